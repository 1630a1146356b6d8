// The search itself: what it plays is a job of the roles' own code, and repeats exactly.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/search/play_apart.h"
#include "tests/search/scenario.h"
#include "tests/search/world.h"

namespace keelson {
namespace {

// Each mode comes with several numbers of servers and workers.
TEST(Search, JobsWithoutFaultsBreakNoRule) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Scenario scenario = MakeScenario(seed, 0);
    const Verdict verdict = PlayApart(scenario, false);
    EXPECT_EQ(verdict.violation, "") << scenario.ToString();
    EXPECT_GT(verdict.choices, 500) << scenario.ToString();
  }
}

TEST(Search, RepeatsASeedExactly) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Scenario scenario = MakeScenario(seed, ~uint64_t{0});
    const Verdict once = PlayApart(scenario, false);
    const Verdict again = PlayApart(scenario, false);
    EXPECT_EQ(once.trace, again.trace) << scenario.ToString();
    EXPECT_EQ(once.choices, again.choices);
    EXPECT_EQ(once.violation, again.violation);
    EXPECT_NE(once.trace, PlayApart(MakeScenario(seed + 100, ~uint64_t{0}), false).trace);
  }
}

// The job cannot end: its only server never comes back.
TEST(Search, NoticesAJobThatDoesNotEnd) {
  Scenario scenario = MakeScenario(1, 0);
  SimFault fault;
  fault.kind = SimFault::Kind::kFreeze;
  fault.node = 1;
  fault.at = absl::Milliseconds(4000);
  fault.length = absl::Hours(10);
  scenario.faults = {fault};
  scenario.faults_end = absl::Seconds(5);
  EXPECT_EQ(PlayApart(scenario, false).violation.substr(0, 8), "progress");
}

// A bug of storage: the power is cut, and what was synced is lost, too.
TEST(Search, NoticesThatNoSnapshotIsLeft) {
  Scenario scenario = MakeScenario(1, 0);
  SimFault fault;
  fault.kind = SimFault::Kind::kErase;
  fault.at = absl::Seconds(3);
  scenario.faults = {fault};
  EXPECT_EQ(PlayApart(scenario, false).violation.substr(0, 8), "snapshot");
}

}  // namespace
}  // namespace keelson
