#include "chief/coordination/stall_watch.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kWorker = 7;

class StallWatchTest : public testing::Test {
 protected:
  StallWatchTest() { watch_.Join(kWorker); }
  std::vector<StallWatch::Stalled> After(absl::Duration time) {
    clock_.Advance(time);
    return watch_.Look({kWorker});
  }

  ManualClock clock_;
  StallWatch watch_{&clock_};
};

TEST_F(StallWatchTest, TheFirstStepMayTakeMinutes) {
  EXPECT_THAT(After(absl::ZeroDuration()), IsEmpty());
  EXPECT_THAT(After(StallWatch::kFirstStep), IsEmpty());
  const auto stalled = After(absl::Milliseconds(1));
  ASSERT_THAT(stalled, SizeIs(1));
  EXPECT_EQ(stalled[0].incarnation, kWorker);
  EXPECT_EQ(stalled[0].since, StallWatch::kFirstStep + absl::Milliseconds(1));
  EXPECT_EQ(stalled[0].bound, StallWatch::kFirstStep);
}

TEST_F(StallWatchTest, AFastWorkerHasHalfAMinute) {
  After(absl::ZeroDuration());
  clock_.Advance(absl::Milliseconds(10));
  watch_.NoteSteps(kWorker, 1);
  EXPECT_THAT(After(StallWatch::kShortest), IsEmpty());
  EXPECT_THAT(After(absl::Milliseconds(1)), SizeIs(1));
}

TEST_F(StallWatchTest, ASlowWorkerHasTwentyOfItsOwnSteps) {
  After(absl::ZeroDuration());
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Seconds(20));
    watch_.NoteSteps(kWorker, 2);
  }
  clock_.Advance(absl::Minutes(5));
  watch_.NoteSteps(kWorker, 1);  // one that is far from the median
  EXPECT_THAT(After(absl::Seconds(200)), IsEmpty());
  EXPECT_THAT(After(absl::Milliseconds(1)), SizeIs(1));
}

TEST_F(StallWatchTest, AWorkerMayAskForMore) {
  const absl::Duration bound = 2 * StallWatch::kFirstStep;
  watch_.Join(kWorker, bound);
  After(absl::ZeroDuration());
  EXPECT_THAT(After(bound), IsEmpty());
  watch_.NoteSteps(kWorker, 1000);
  EXPECT_THAT(After(bound), IsEmpty());
  const auto stalled = After(absl::Milliseconds(1));
  ASSERT_THAT(stalled, SizeIs(1));
  EXPECT_EQ(stalled[0].bound, bound);
  watch_.Join(kWorker, absl::Seconds(1));
  EXPECT_THAT(After(absl::ZeroDuration()), SizeIs(1));
  EXPECT_EQ(watch_.Look({kWorker})[0].bound, StallWatch::kShortest) << "less is not less";
}

TEST_F(StallWatchTest, StrangersAreIgnored) {
  watch_.Forget(kWorker);
  watch_.NoteSteps(kWorker, 1);
  EXPECT_THAT(After(absl::ZeroDuration()), IsEmpty());
  EXPECT_THAT(After(absl::Hours(1)), IsEmpty());
}

TEST_F(StallWatchTest, WhoHoldsNothingOwesNothing) {
  After(absl::ZeroDuration());
  watch_.NoteSteps(kWorker, 1);
  clock_.Advance(absl::Hours(1));
  EXPECT_THAT(watch_.Look({}), IsEmpty());
  EXPECT_THAT(After(absl::ZeroDuration()), IsEmpty()) << "the time begins with the new work";
  EXPECT_THAT(After(absl::Seconds(31)), SizeIs(1));
}

TEST_F(StallWatchTest, TimeInWhichNobodyCouldStepDoesNotCount) {
  After(absl::ZeroDuration());
  watch_.NoteSteps(kWorker, 1);
  clock_.Advance(absl::Hours(1));
  watch_.Excuse();
  EXPECT_THAT(After(absl::Seconds(30)), IsEmpty());
  EXPECT_THAT(After(absl::Seconds(1)), SizeIs(1));
}

}  // namespace
}  // namespace keelson
