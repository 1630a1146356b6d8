#include "ps_server/service/chief_admission.h"

#include <string>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ChiefAdmissionTest, ANewerChiefTakesTheOldOnesPlaceForGood) {
  ManualClock clock;
  ChiefAdmission chiefs(&clock);
  EXPECT_EQ(chiefs.Silence(), absl::InfiniteDuration());
  EXPECT_EQ(chiefs.Admit("Finish", 1), absl::OkStatus());
  EXPECT_EQ(chiefs.Admit("Finish", 2), absl::OkStatus());
  EXPECT_EQ(chiefs.Admit("Finish", 1).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(chiefs.Admit("Finish", 2), absl::OkStatus());
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(chiefs.Silence(), absl::Seconds(3));
}

TEST(ChiefAdmissionTest, ASecondChiefWaitsUntilTheFirstIsSilent) {
  ManualClock clock;
  ChiefAdmission chiefs(&clock, absl::Seconds(10));
  EXPECT_EQ(chiefs.Admit("ChiefHeartbeat", 1), absl::OkStatus());
  clock.Advance(absl::Seconds(6));
  EXPECT_EQ(chiefs.Admit("ChiefHeartbeat", 1), absl::OkStatus());
  clock.Advance(absl::Seconds(9));
  const absl::Status early = chiefs.Admit("Initialize", 2);
  EXPECT_EQ(early.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(early.message()), AllOf(HasSubstr("another chief was heard 9s ago"),
                                                  HasSubstr("in 1s at the earliest")));
  // The attempt is no sign of the first one, which stays the chief.
  EXPECT_EQ(chiefs.Silence(), absl::Seconds(9));
  EXPECT_EQ(chiefs.Admit("ChiefHeartbeat", 1), absl::OkStatus());
  clock.Advance(absl::Seconds(10));
  EXPECT_EQ(chiefs.Admit("Initialize", 2), absl::OkStatus());
  EXPECT_EQ(chiefs.Admit("ChiefHeartbeat", 1).code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace keelson
