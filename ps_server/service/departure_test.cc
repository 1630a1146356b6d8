#include "ps_server/service/departure.h"

#include <thread>
#include <utility>

#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr absl::Duration kCalling = absl::Milliseconds(250);
const auto kClosed = [] { return true; };

TEST(DepartureTest, NoChiefNobodyToWaitFor) {
  EXPECT_FALSE(MustLinger({}, absl::ZeroDuration(), {}));
  EXPECT_FALSE(MustLinger({absl::Seconds(1), true}, absl::ZeroDuration(), {}));
}

TEST(DepartureTest, ServesAChiefThatStopsUntilItIsSilent) {
  EXPECT_TRUE(MustLinger({kCalling, true}, absl::Seconds(99), {}));
  EXPECT_FALSE(MustLinger({absl::Seconds(1), true}, absl::Seconds(5), {}));
}

TEST(DepartureTest, AChiefThatStaysIsLeftSoon) {
  EXPECT_TRUE(MustLinger({kCalling, false}, absl::Seconds(2.9), {}));
  EXPECT_FALSE(MustLinger({kCalling, false}, absl::Seconds(3), {}));
}

TEST(DepartureTest, AChiefThatStaysIsGivenTheTimeForASnapshot) {
  EXPECT_TRUE(MustLinger({kCalling, false, /*unsaved=*/true}, absl::Seconds(99), {}));
  EXPECT_FALSE(MustLinger({kCalling, false, /*unsaved=*/true}, absl::Seconds(100), {}));
}

TEST(DepartureTest, ASlowChiefIsNotTakenForEndedWhileItsSnapshotIsMissing) {
  EXPECT_TRUE(MustLinger({absl::Seconds(4.9), false, /*unsaved=*/true}, absl::Seconds(6), {}));
  EXPECT_FALSE(MustLinger({absl::Seconds(5), false, /*unsaved=*/true}, absl::Seconds(6), {}));
  EXPECT_FALSE(MustLinger({absl::Seconds(1), true, /*unsaved=*/true}, absl::Seconds(6), {}));
}

TEST(DepartureTest, GoesWhateverTheChiefDoes) {
  EXPECT_FALSE(MustLinger({kCalling, true}, absl::Seconds(100), {}));
}

TEST(DepartureTest, WaitsForTheSilence) {
  const StopSignal end;
  int looks = 0;
  LingerForChief(
      [&] {
        return ++looks < 3 ? ChiefSign{kCalling, true} : ChiefSign{};
      },
      kClosed, {}, Clock::Real(), end);
  EXPECT_EQ(looks, 3);
}

TEST(DepartureTest, StaysForWhatCameAtTheLastMoment) {
  const StopSignal end;
  int closes = 0;
  bool unsaved = false;
  LingerForChief(
      [&] {
        return ChiefSign{kCalling, false, std::exchange(unsaved, false)};
      },
      [&] {
        unsaved = ++closes == 1;
        return !unsaved;
      },
      {.announcement = absl::ZeroDuration()}, Clock::Real(), end);
  EXPECT_EQ(closes, 2);
}

TEST(DepartureTest, LeavesAChiefThatIsAwayWithWhatIsUnsaved) {
  const StopSignal end;
  LingerForChief(
      [] {
        return ChiefSign{absl::Seconds(5), false, /*unsaved=*/true};
      },
      [] { return false; }, {}, Clock::Real(), end);
}

TEST(DepartureTest, TheEndOfTheJobEndsTheWaiting) {
  StopSignal end;
  std::thread job;
  LingerForChief(
      [&] {
        if (!job.joinable()) job = std::thread([&] { end.Raise(); });
        return ChiefSign{kCalling, true};
      },
      kClosed, {.longest = absl::InfiniteDuration()}, Clock::Real(), end);
  job.join();
}

}  // namespace
}  // namespace keelson
