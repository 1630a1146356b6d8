// The search itself: what it plays is a job of the roles' own code, and repeats exactly.
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "evaluator/metrics_log.h"
#include "gtest/gtest.h"
#include "keelson/v1/checkpoint.pb.h"
#include "tests/search/evaluation_rule.h"
#include "tests/search/job_state_rule.h"
#include "tests/search/mode_rule.h"
#include "tests/search/play_apart.h"
#include "tests/search/profiles.h"
#include "tests/search/scenario.h"
#include "tests/search/world.h"

namespace keelson {
namespace {

// Each mode comes with several numbers of servers, workers and evaluators.
TEST(Search, JobsWithoutFaultsBreakNoRule) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Scenario scenario = MakeScenario(seed, 0);
    const Verdict verdict = PlayApart(scenario, false);
    EXPECT_EQ(verdict.violation, "") << scenario.ToString();
    EXPECT_GT(verdict.choices, 300) << scenario.ToString();
  }
}

// With two to four hosts, with replicas and without.
TEST(Search, CollectiveJobsWithoutFaultsBreakNoRule) {
  int found = 0;
  for (uint64_t seed = 0; found < 8; ++seed) {
    if (DrawProfile(seed) != FaultProfile::kHosts) continue;
    ++found;
    const Scenario scenario = MakeScenario(seed, 0);
    EXPECT_TRUE(scenario.collective);
    EXPECT_EQ(PlayApart(scenario, false).violation, "") << scenario.ToString();
  }
}

// With servers that hold the table alone, and one to four hosts.
TEST(Search, HybridJobsWithoutFaultsBreakNoRule) {
  int found = 0;
  for (uint64_t seed = 0; found < 6; ++seed) {
    if (DrawProfile(seed) != FaultProfile::kHybrid) continue;
    ++found;
    const Scenario scenario = MakeScenario(seed, 0);
    EXPECT_TRUE(scenario.hybrid && scenario.job.table);
    EXPECT_EQ(PlayApart(scenario, false).violation, "") << scenario.ToString();
  }
}

// Hosts at any ports, which the leader learns.
TEST(Search, JobsWhoseProcessesRegisterBreakNoRuleWithoutFaults) {
  int found = 0;
  for (uint64_t seed = 0; found < 6; ++seed) {
    if (DrawProfile(seed) != FaultProfile::kRegisters) continue;
    ++found;
    const Scenario scenario = MakeScenario(seed, 0);
    EXPECT_TRUE(scenario.registers);
    EXPECT_EQ(PlayApart(scenario, false).violation, "") << scenario.ToString();
  }
}

// Three hosts, of which the last one is killed, for good, when it has `executed` something.
Scenario LosingAHost(const std::string& executed, v1::CollectiveConfig::Replicas copies) {
  Scenario scenario = MakeScenario(1, 0);
  scenario.collective = true;
  scenario.servers = 0;
  scenario.workers = 2;
  scenario.evaluators = 0;
  scenario.job = {};
  scenario.job.mode = RecordMode::kSynchronous;
  scenario.job.slots = scenario.job.distinct = true;
  scenario.job.records = 32;
  scenario.job.copies = copies;
  SimFault fault;
  fault.trigger = {2, executed, SimPoint::When::kExecuted, 3};
  fault.node = 2;
  fault.length = absl::Hours(10);
  scenario.faults = {fault};
  scenario.faults_end = absl::Seconds(5);
  return scenario;
}

TEST(Search, AJobWithReplicasEndsAsIfNoHostHadBeenLost) {
  for (const char* executed : {"PushPull", "ReadRound", "CommitRound"}) {
    const Scenario scenario = LosingAHost(executed, v1::CollectiveConfig::AUTO);
    EXPECT_EQ(PlayApart(scenario, false).violation, "") << scenario.ToString();
  }
}

// A server beside three hosts, of which the last one is killed, for good; so is the server, which
// comes back.
TEST(Search, AHybridJobEndsAlthoughAHostIsLostAndAServerIsKilled) {
  for (const char* executed : {"PushPull", "ReadRound", "CommitRound"}) {
    Scenario scenario = LosingAHost(executed, v1::CollectiveConfig::AUTO);
    scenario.collective = false;
    scenario.hybrid = scenario.job.hybrid = scenario.job.table = true;
    scenario.job.slots = false;
    scenario.servers = 1;
    scenario.workers = 3;
    SimFault& lost = scenario.faults.front();
    lost.node = lost.trigger->node = 4;
    SimFault killed;
    killed.at = absl::Seconds(4);
    killed.node = 1;
    killed.length = absl::Seconds(1);
    scenario.faults.push_back(killed);
    EXPECT_EQ(PlayApart(scenario, false).violation, "") << scenario.ToString();
  }
}

// It comes back at another port.
TEST(Search, AHostThatRegistersAnewGetsItsShardBack) {
  for (const char* executed : {"AnnounceHost", "PushPull", "CommitRound"}) {
    Scenario scenario = LosingAHost(executed, v1::CollectiveConfig::AUTO);
    scenario.registers = true;
    SimFault& lost = scenario.faults.front();
    if (std::string(executed) == "AnnounceHost") lost.trigger->when = SimPoint::When::kAnswer;
    lost.length = absl::Seconds(1);
    EXPECT_EQ(PlayApart(scenario, false).violation, "") << scenario.ToString();
  }
}

TEST(Search, AJobWithoutReplicasWaitsForALostHost) {
  const Scenario scenario = LosingAHost("CommitRound", v1::CollectiveConfig::NEVER);
  EXPECT_EQ(PlayApart(scenario, false).violation.substr(0, 8), "progress");
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

EvaluationRecord RecordOf(int64_t step, uint64_t id, double loss, absl::Duration time) {
  EvaluationRecord record;
  record.step = step;
  record.snapshot_id = id;
  record.metrics["loss"] = loss;
  record.wall_time = absl::UnixEpoch() + time;
  return record;
}

TEST(EvaluationRule, HoldsAnEvaluationToBeOfACommittedSnapshot) {
  EvaluationRule rule;
  rule.NoteSnapshot(7, 10, 3);
  EXPECT_EQ(rule.Add(RecordOf(10, 7, 3, absl::Seconds(1))), "");
  EXPECT_NE(rule.Add(RecordOf(10, 8, 3, absl::Seconds(1))), "");
  EXPECT_NE(rule.Add(RecordOf(11, 7, 3, absl::Seconds(1))), "");
  EXPECT_NE(rule.Add(RecordOf(10, 7, 4, absl::Seconds(60))), "");
  EXPECT_EQ(rule.CheckAcknowledged(10, 7), "");
  EXPECT_NE(rule.CheckAcknowledged(10, 8), "");
}

TEST(EvaluationRule, NoticesASecondEvaluationWithinAClaim) {
  EvaluationRule rule;
  rule.NoteSnapshot(7, 10, 3);
  EXPECT_EQ(rule.Add(RecordOf(10, 7, 3, absl::Seconds(1))), "");
  EXPECT_NE(rule.Add(RecordOf(10, 7, 3, absl::Seconds(9))), "");
  EXPECT_EQ(rule.Add(RecordOf(10, 7, 3, absl::Seconds(40))), "") << "its claim may have ended";
  rule.NoteTrouble();
  EXPECT_EQ(rule.Add(RecordOf(10, 7, 3, absl::Seconds(41))), "");
}

TEST(EvaluationRule, NoticesAJobWhoseLastSnapshotHasNoEvaluation) {
  const std::string file = FormatEvaluationRecord(RecordOf(10, 7, 3, {})) +
                           FormatEvaluationRecord(RecordOf(20, 8, 3, {}));
  EXPECT_EQ(EvaluationRule::CheckEnd(file, 20, 8), "");
  EXPECT_NE(EvaluationRule::CheckEnd(file, 20, 9), "");
  EXPECT_NE(EvaluationRule::CheckEnd(file, 30, 8), "");
}

TEST(JobStateRule, NoticesRecordsThatAreThereTwice) {
  v1::PersistedJobState state;
  v1::PersistedJobState::Ticket* const leased = state.add_leases()->add_tickets();
  leased->set_end(4);
  v1::PersistedJobState::Ticket* const returned = state.add_returned();
  returned->set_begin(4);
  returned->set_end(8);
  EXPECT_EQ(CheckJobState(state, 1, 0), "");
  v1::JobState::Range* const unfinished = state.mutable_job()->add_unfinished();
  unfinished->set_begin(7);
  unfinished->set_end(9);
  EXPECT_NE(CheckJobState(state, 1, 0), "");
  unfinished->set_begin(8);
  EXPECT_EQ(CheckJobState(state, 1, 0), "");
  leased->set_end(5);
  EXPECT_NE(CheckJobState(state, 1, 0), "");
}

TEST(JobStateRule, NoticesMoreMembersThanTasks) {
  v1::PersistedJobState state;
  state.add_members();
  EXPECT_EQ(CheckJobState(state, 1, 0), "");
  state.add_members();
  EXPECT_NE(CheckJobState(state, 1, 0), "");
}

TEST(ModeRule, HoldsAnAnsweredChangeToBeInForce) {
  const ConsistencyMode async = *ConsistencyMode::Parse("async");
  const ConsistencyMode sync = *ConsistencyMode::Parse("sync:2");
  ModeRule rule(async);
  EXPECT_EQ(rule.Check(async), "");
  const size_t change = rule.Ask(sync);
  EXPECT_EQ(rule.Check(async), "") << "without an answer it may have been lost";
  rule.NoteCalled(1);
  rule.NoteCalled(2);
  rule.NoteAnswer(change, {1, 2, 3});
  EXPECT_EQ(rule.Check(sync), "");
  EXPECT_NE(rule.Check(async), "");
  rule.NoteEnd(1);
  EXPECT_NE(rule.Check(async), "") << "one server still has it";
  rule.NoteEnd(2);
  EXPECT_EQ(rule.Check(async), "") << "it was lost with all servers";
}

TEST(ModeRule, LooksAtServersAloneThatTheChiefHasCalled) {
  const ConsistencyMode sync = *ConsistencyMode::Parse("sync:2");
  ModeRule rule(*ConsistencyMode::Parse("async"));
  rule.NoteCalled(1);
  const size_t first = rule.Ask(sync);
  rule.NoteCalled(2);
  const size_t again = rule.Ask(sync);
  rule.NoteAnswer(again, {1, 2});
  rule.NoteEnd(1);
  EXPECT_NE(rule.Check(*ConsistencyMode::Parse("async")), "") << "2 has it from request " << first;
  rule.NoteEnd(2);
  EXPECT_EQ(rule.Check(*ConsistencyMode::Parse("async")), "");
}

TEST(ModeRule, AllowsChangesThatWereUnderWayTogetherInAnyOrder) {
  const ConsistencyMode one = *ConsistencyMode::Parse("sync:1");
  const ConsistencyMode two = *ConsistencyMode::Parse("sync:1/2");
  const ConsistencyMode three = *ConsistencyMode::Parse("async");
  ModeRule rule(*ConsistencyMode::Parse("ssp:1"));
  const size_t first = rule.Ask(one);
  const size_t second = rule.Ask(two);
  rule.NoteCalled(1);
  rule.NoteAnswer(first, {1});
  rule.NoteAnswer(second, {1});
  EXPECT_EQ(rule.Check(one), "");
  EXPECT_EQ(rule.Check(two), "");
  const size_t third = rule.Ask(three);
  rule.NoteCalled(1);
  rule.NoteAnswer(third, {1});
  EXPECT_NE(rule.Check(two), "");
  EXPECT_EQ(rule.Check(three), "");
}

TEST(ModeRule, AllowsALaterChangeThatWasNotAnswered) {
  const ConsistencyMode sync = *ConsistencyMode::Parse("sync:2");
  const ConsistencyMode ssp = *ConsistencyMode::Parse("ssp:1");
  ModeRule rule(*ConsistencyMode::Parse("async"));
  const size_t first = rule.Ask(sync);
  rule.NoteCalled(1);
  rule.NoteAnswer(first, {1});
  const size_t later = rule.Ask(ssp);
  EXPECT_EQ(rule.Check(ssp), "");
  EXPECT_EQ(rule.Check(sync), "");
  rule.NoteRefusal(later);
  EXPECT_EQ(rule.Check(sync), "");
}

}  // namespace
}  // namespace keelson
