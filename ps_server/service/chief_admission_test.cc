#include "ps_server/service/chief_admission.h"

#include <string>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::RequestHeader Chief(uint64_t term, uint64_t incarnation) {
  v1::RequestHeader header;
  header.set_chief_term(term);
  header.set_incarnation(incarnation);
  return header;
}

TEST(ChiefAdmissionTest, TheHighestTermIsObeyedWhoeverCallsFirst) {
  ManualClock clock;
  ChiefAdmission chiefs(&clock);
  EXPECT_EQ(chiefs.Silence(), absl::InfiniteDuration());
  EXPECT_EQ(chiefs.Admit("Finish", Chief(4, 1)), absl::OkStatus());
  EXPECT_EQ(chiefs.Admit("Finish", Chief(6, 2)), absl::OkStatus());
  EXPECT_EQ(chiefs.Admit("Finish", Chief(5, 3)),
            absl::AbortedError("Finish: another chief has taken the caller's place: "
                               "expected a term above 6, found 5"));
  EXPECT_EQ(chiefs.Admit("Finish", Chief(4, 1)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(chiefs.term(), 6u);
  EXPECT_EQ(chiefs.Admit("Finish", Chief(6, 2)), absl::OkStatus());
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(chiefs.Silence(), absl::Seconds(3));
}

TEST(ChiefAdmissionTest, OfOneTermTheFirstChiefIsObeyed) {
  ManualClock clock;
  ChiefAdmission chiefs(&clock);
  EXPECT_EQ(chiefs.Admit("Finish", Chief(0, 1)), absl::OkStatus());
  EXPECT_EQ(chiefs.Admit("Finish", Chief(0, 2)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(chiefs.Admit("Finish", Chief(3, 1)), absl::OkStatus()) << "it may raise its term";
  EXPECT_EQ(chiefs.Admit("Finish", Chief(3, 2)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(chiefs.Admit("Finish", Chief(0, 1)).code(), absl::StatusCode::kAborted);
}

TEST(ChiefAdmissionTest, WorkThatGoesOnIsNoSignOfItsChief) {
  ManualClock clock;
  ChiefAdmission chiefs(&clock);
  ASSERT_EQ(chiefs.Admit("WriteSnapshot", Chief(4, 1)), absl::OkStatus());
  clock.Advance(absl::Seconds(30));
  EXPECT_EQ(chiefs.CheckNotReplaced("WriteSnapshot", Chief(4, 1)), absl::OkStatus());
  EXPECT_EQ(chiefs.Silence(), absl::Seconds(30));
  ASSERT_EQ(chiefs.Admit("WriteSnapshot", Chief(5, 2)), absl::OkStatus());
  EXPECT_EQ(chiefs.CheckNotReplaced("WriteSnapshot", Chief(4, 1)),
            chiefs.Admit("WriteSnapshot", Chief(4, 1)));
}

TEST(ChiefAdmissionTest, ASecondChiefWaitsUntilTheFirstIsSilent) {
  ManualClock clock;
  ChiefAdmission chiefs(&clock, absl::Seconds(10));
  EXPECT_EQ(chiefs.Admit("ChiefHeartbeat", Chief(1, 1)), absl::OkStatus());
  clock.Advance(absl::Seconds(6));
  EXPECT_EQ(chiefs.Admit("ChiefHeartbeat", Chief(1, 1)), absl::OkStatus());
  clock.Advance(absl::Seconds(9));
  const absl::Status early = chiefs.Admit("Initialize", Chief(2, 2));
  EXPECT_EQ(early.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(early.message()), AllOf(HasSubstr("another chief was heard 9s ago"),
                                                  HasSubstr("in 1s at the earliest")));
  // The attempt is no sign of the first one, which stays the chief.
  EXPECT_EQ(chiefs.Silence(), absl::Seconds(9));
  EXPECT_EQ(chiefs.Admit("ChiefHeartbeat", Chief(1, 1)), absl::OkStatus());
  clock.Advance(absl::Seconds(10));
  EXPECT_EQ(chiefs.Admit("Initialize", Chief(2, 2)), absl::OkStatus());
  EXPECT_EQ(chiefs.Admit("ChiefHeartbeat", Chief(1, 1)).code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace keelson
