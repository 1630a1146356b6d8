#include "chief/coordination/coordinator.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

class CoordinatorTest : public testing::Test {
 protected:
  void StartTraining(int64_t max_steps) {
    WorkOptions work;
    work.max_steps = max_steps;
    work.num_records = 1000;
    work.batch_size = 10;
    coordinator_.start()->StartTraining({Placement(), {"ps-0:1"}}, WorkLedger(work));
  }
  void Register(Task task, uint64_t incarnation) {
    ASSERT_EQ(coordinator_.members()->Register(task, TestId(incarnation), kHash, "host:1").status(),
              absl::OkStatus());
  }
  // A lease, or none.
  std::optional<WorkLease> Acquire(Task task, uint64_t incarnation, const WorkerReport& report = {},
                                   absl::Duration max_wait = kNoWait, uint64_t sequence = 0) {
    const auto lease =
        coordinator_.requests()->AcquireWork(task, TestId(incarnation), report, max_wait, sequence);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *lease : std::nullopt;
  }
  // Lets the leases of all members pass, retires them at the servers, and hands their work on.
  void LoseEveryone() {
    clock_.Advance(kLease);
    coordinator_.roster()->ExpireLeases();
    coordinator_.roster()->HandOn(coordinator_.roster()->TakeEnded());
  }
  Member::State StateOf(Task task) {
    for (const Member& member : coordinator_.reports()->GetStatus().members) {
      if (member.task == task) return member.state;
    }
    ADD_FAILURE() << task.ToString() << " is no member";
    return Member::kLeft;
  }

  ManualClock clock_;
  Coordinator coordinator_{{kHash, kLease}, &clock_};
  StopSignal stop_;
};

TEST_F(CoordinatorTest, RefusesAnotherConfiguration) {
  const absl::Status status =
      coordinator_.members()->Register(kWorker0, TestId(1), 0xdef, "host:1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker-0"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000abc"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000def"));
}

TEST_F(CoordinatorTest, RefusesASecondLifeOfATaskThatIsAlive) {
  Register(kWorker0, 1);
  EXPECT_EQ(coordinator_.members()->Register(kWorker0, TestId(2), kHash, "host:2").status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(CoordinatorTest, ModelIsKnownOnceTrainingStarts) {
  EXPECT_EQ(coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kNoWait).status().code(),
            absl::StatusCode::kAborted);
  Register(kWorker0, 1);
  EXPECT_EQ(coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kNoWait).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  StartTraining(10);
  const auto model = coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kNoWait);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->ps_addresses, ElementsAre("ps-0:1"));
}

TEST_F(CoordinatorTest, FailureEndsTheWaitForTheModel) {
  Register(kWorker0, 1);
  std::thread fails([&] { coordinator_.control()->Fail(absl::DataLossError("ps-1 is away")); });
  const absl::Status status =
      coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kLong).status();
  fails.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-1 is away"));
}

TEST_F(CoordinatorTest, NoWorkBeforeTraining) {
  Register(kWorker0, 1);
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value());
}

TEST_F(CoordinatorTest, CallsOfStrangersAreAborted) {
  StartTraining(10);
  EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.members()->Leave(kWorker0, TestId(1), {}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.requests()->AcquireWork(kWorker0, TestId(1), {}, kNoWait).status().code(),
            absl::StatusCode::kAborted);
}

TEST_F(CoordinatorTest, TwoWorkersDoExactlyMaxSteps) {
  StartTraining(37);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  std::set<int64_t> steps;
  WorkerReport reports[2];
  for (int turn = 0; coordinator_.reports()->GetStatus().step < 37; turn = 1 - turn) {
    const Task task = {Role::kWorker, turn};
    const auto lease = Acquire(task, static_cast<uint64_t>(turn) + 1, reports[turn]);
    reports[turn] = {};
    if (!lease.has_value()) continue;
    for (const WorkTicket& ticket : lease->tickets) EXPECT_TRUE(steps.insert(ticket.step).second);
    const auto size = static_cast<int64_t>(lease->tickets.size());
    reports[turn] = Completed(lease->id, size, size);
    clock_.Advance(absl::Milliseconds(10));
  }
  EXPECT_EQ(steps.size(), 37u);
  EXPECT_EQ(*steps.rbegin(), 36);
  EXPECT_EQ(coordinator_.reports()->GetStatus().totals.steps(), 37);
}

TEST_F(CoordinatorTest, LeasesGrowToTheWorkersPaceAndShrinkAtTheEnd) {
  StartTraining(400);
  Register(kWorker0, 1);
  std::vector<size_t> sizes;
  WorkerReport report;
  while (const auto lease = Acquire(kWorker0, 1, report)) {
    sizes.push_back(lease->tickets.size());
    // 100 steps a second.
    clock_.Advance(absl::Milliseconds(10) * static_cast<double>(lease->tickets.size()));
    report = Completed(lease->id, static_cast<int64_t>(lease->tickets.size()));
  }
  ASSERT_GT(sizes.size(), 7u);
  EXPECT_THAT(std::vector<size_t>(sizes.begin(), sizes.begin() + 6),
              ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(*std::max_element(sizes.begin(), sizes.end()), AllOf(Ge(49u), Le(50u)));
  EXPECT_EQ(sizes.back(), 1u);
}

TEST_F(CoordinatorTest, WorkOfALostWorkerGoesToOthers) {
  StartTraining(2);
  Register(kWorker0, 1);
  const auto lost = Acquire(kWorker0, 1);
  ASSERT_TRUE(lost.has_value());
  LoseEveryone();
  EXPECT_EQ(StateOf(kWorker0), Member::kLost);
  Register(kWorker1, 2);
  const auto taken = Acquire(kWorker1, 2);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->tickets, lost->tickets);
  // The lost one's late report does not count.
  EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), Completed(lost->id, 1)).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 0);
}

TEST_F(CoordinatorTest, AWaitingWorkerGetsTheWorkOfALostOneAtOnce) {
  StartTraining(1);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  clock_.Advance(kLease / 2);
  Register(kWorker1, 2);
  std::optional<WorkLease> taken;
  std::thread waits([&] { taken = Acquire(kWorker1, 2, {}, kLong); });
  // Its own waiting keeps the second worker alive.
  clock_.Advance(kLease / 2);
  coordinator_.roster()->ExpireLeases();
  coordinator_.roster()->HandOn(coordinator_.roster()->TakeEnded());
  waits.join();
  EXPECT_TRUE(taken.has_value());
}

TEST_F(CoordinatorTest, WorkIsHandedOnOnlyAfterItsHolderWasFenced) {
  StartTraining(1);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  clock_.Advance(kLease);
  coordinator_.roster()->ExpireLeases();
  Register(kWorker1, 2);
  EXPECT_FALSE(Acquire(kWorker1, 2).has_value());
  EXPECT_THAT(coordinator_.roster()->TakeEnded(), ElementsAre(1u));
  EXPECT_THAT(coordinator_.roster()->TakeEnded(), IsEmpty());
  EXPECT_FALSE(Acquire(kWorker1, 2).has_value());
  coordinator_.roster()->HandOn({1});
  EXPECT_TRUE(Acquire(kWorker1, 2).has_value());
  ASSERT_EQ(coordinator_.roster()->MemberList().members_size(), 1);
  EXPECT_EQ(coordinator_.roster()->MemberList().members(0).incarnation(), 2u);
}

TEST_F(CoordinatorTest, ALostWorkerJoinsAnewAsAnother) {
  StartTraining(5);
  Register(kWorker0, 1);
  const auto old = Acquire(kWorker0, 1);
  LoseEveryone();
  EXPECT_EQ(coordinator_.members()->Register(kWorker0, TestId(1), kHash, "host:1").status().code(),
            absl::StatusCode::kAborted);
  Register(kWorker0, 2);
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive);
  const auto fresh = Acquire(kWorker0, 2, Completed(old->id, 1, 1));
  ASSERT_TRUE(fresh.has_value());
  EXPECT_NE(fresh->id, old->id);
  EXPECT_EQ(fresh->tickets, old->tickets);
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 0) << "the old lease was another's";
}

TEST_F(CoordinatorTest, AReplacementTakesOverTheTaskAndFreesItsWork) {
  StartTraining(1);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  clock_.Advance(absl::Seconds(1));
  Register(kWorker0, 2);
  EXPECT_THAT(coordinator_.roster()->TakeEnded(), ElementsAre(1u));
  coordinator_.roster()->HandOn({1});
  EXPECT_TRUE(Acquire(kWorker0, 2).has_value());
  EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}).code(),
            absl::StatusCode::kAborted);
}

TEST_F(CoordinatorTest, LeavingGivesWorkBackAndKeepsWhatIsDone) {
  StartTraining(100);
  Register(kWorker0, 1);
  auto lease = Acquire(kWorker0, 1);
  lease = Acquire(kWorker0, 1, Completed(lease->id, 1));
  ASSERT_EQ(lease->tickets.size(), 2u);
  ASSERT_EQ(coordinator_.members()->Leave(kWorker0, TestId(1), Completed(lease->id, 1, 2)),
            absl::OkStatus());
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 2);
  EXPECT_EQ(StateOf(kWorker0), Member::kLeft);
  coordinator_.roster()->HandOn(coordinator_.roster()->TakeEnded());
  Register(kWorker1, 2);
  EXPECT_EQ(Acquire(kWorker1, 2)->tickets[0], lease->tickets[1]);
}

TEST_F(CoordinatorTest, ARepeatedRequestGetsTheSameLeaseAndCountsOnce) {
  StartTraining(10);
  Register(kWorker0, 1);
  const auto first = Acquire(kWorker0, 1, {}, kNoWait, 1);
  const WorkerReport report = Completed(first->id, 1, 1);
  const auto second = Acquire(kWorker0, 1, report, kNoWait, 2);
  const auto again = Acquire(kWorker0, 1, report, kNoWait, 2);
  ASSERT_TRUE(second.has_value() && again.has_value());
  EXPECT_EQ(again->id, second->id);
  EXPECT_EQ(again->tickets, second->tickets);
  EXPECT_EQ(coordinator_.reports()->GetStatus().totals.steps(), 1);
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 1);
}

TEST_F(CoordinatorTest, AnOvertakenRequestGetsNothing) {
  StartTraining(10);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1, {}, kNoWait, 2).has_value());
  EXPECT_FALSE(Acquire(kWorker0, 1, {}, kNoWait, 1).has_value());
}

TEST_F(CoordinatorTest, AWaitForWorkEndsWithTheMembership) {
  StartTraining(1);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  absl::Status waited;
  std::atomic<bool> ended{false};
  std::thread waits([&] {
    waited = coordinator_.requests()
                 ->AcquireWork(kWorker1, TestId(2), {}, absl::InfiniteDuration(), 1)
                 .status();
    ended = true;
  });
  // Again while the waiting itself has kept its worker alive. The other one keeps the only step.
  while (!ended) {
    for (int half = 0; half < 2; ++half) {
      clock_.Advance(kLease / 2);
      EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}), absl::OkStatus());
    }
    coordinator_.roster()->ExcuseSteps();
    coordinator_.roster()->ExpireLeases();
  }
  waits.join();
  EXPECT_EQ(waited.code(), absl::StatusCode::kAborted);
}

TEST_F(CoordinatorTest, AReportOfMoreThanTheLeaseHasIsRefused) {
  StartTraining(10);
  Register(kWorker0, 1);
  const auto lease = Acquire(kWorker0, 1);
  EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), Completed(lease->id, 2)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorTest, TheLastStepEndsTheChiefsWaitAndItsSnapshotThatOfWorkers) {
  StartTraining(1);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  const auto last = Acquire(kWorker0, 1);
  std::optional<WorkLease> waited = WorkLease();
  int64_t steps = 0;
  std::thread worker([&] { waited = Acquire(kWorker1, 2, {}, kLong); });
  std::thread chief(
      [&] { steps = coordinator_.control()->WaitForSteps(1, clock_.Monotonic() + kLong, stop_); });
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), Completed(last->id, 1)),
            absl::OkStatus());
  chief.join();
  EXPECT_EQ(steps, 1);
  coordinator_.control()->SetPhase(JobPhase::kFinishing);
  coordinator_.control()->SetPhase(JobPhase::kEvaluating);
  worker.join();
  EXPECT_FALSE(waited.has_value());
}

TEST_F(CoordinatorTest, FailureEndsTheWaitForWork) {
  StartTraining(1);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  std::thread fails([&] { coordinator_.control()->Fail(absl::InternalError("disk full")); });
  EXPECT_FALSE(Acquire(kWorker1, 2, {}, kLong).has_value());
  fails.join();
  EXPECT_EQ(coordinator_.reports()->GetStatus().error, "disk full");
  EXPECT_EQ(coordinator_.control()->phase(), JobPhase::kFailed);
}

TEST_F(CoordinatorTest, WaitForStepsEndsWithTimeStopOrALossThatIsNotFinite) {
  StartTraining(10);
  EXPECT_EQ(coordinator_.control()->WaitForSteps(0, clock_.Monotonic() + kLong, stop_), 0);
  std::thread moves([&] { clock_.Advance(kLong); });
  EXPECT_EQ(coordinator_.control()->WaitForSteps(1, absl::ZeroDuration() + kLong, stop_), 0);
  moves.join();
  Register(kWorker0, 1);
  std::thread reports([&] {
    WorkerReport report;
    report.figures.set_non_finite_losses(1);
    EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), report), absl::OkStatus());
  });
  EXPECT_EQ(coordinator_.control()->WaitForSteps(1, clock_.Monotonic() + kLong, stop_), 0);
  reports.join();
}

TEST_F(CoordinatorTest, WaitForStepsEndsWithStop) {
  StartTraining(10);
  std::thread stops([&] { stop_.Raise(); });
  EXPECT_EQ(coordinator_.control()->WaitForSteps(1, clock_.Monotonic() + kLong, stop_), 0);
  stops.join();
}

TEST_F(CoordinatorTest, OnlyEvaluationsOfTheJobsSnapshotsCount) {
  coordinator_.evaluations()->NameSnapshot(100, 7);
  coordinator_.evaluations()->SetSnapshotStep(100);
  coordinator_.evaluations()->AcknowledgeEvaluation(200, 6, {{"loss", 0.1}});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, -1)
      << "training went back behind step 200";
  coordinator_.evaluations()->AcknowledgeEvaluation(50, 5, {{"loss", 0.9}});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, 50) << "a predecessor's";
  coordinator_.evaluations()->NameSnapshot(200, 8);
  coordinator_.evaluations()->AcknowledgeEvaluation(200, 6, {{"loss", 0.1}});
  EXPECT_FALSE(coordinator_.evaluations()->WaitForEvaluation(200, kNoWait, stop_));
  coordinator_.evaluations()->AcknowledgeEvaluation(200, 8, {{"loss", 0.2}});
  EXPECT_TRUE(coordinator_.evaluations()->WaitForEvaluation(200, kNoWait, stop_))
      << "at once, before SetSnapshotStep";
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluation.at("loss"), 0.2);
}

TEST_F(CoordinatorTest, WaitForEvaluationTakesItsStepOrALaterOne) {
  coordinator_.evaluations()->SetSnapshotStep(6);
  EXPECT_FALSE(coordinator_.evaluations()->WaitForEvaluation(5, kNoWait, stop_));
  coordinator_.evaluations()->AcknowledgeEvaluation(4, 0, {{"accuracy", 0.4}});
  EXPECT_FALSE(coordinator_.evaluations()->WaitForEvaluation(5, kNoWait, stop_));
  std::thread scores([&] {
    coordinator_.evaluations()->AcknowledgeEvaluation(6, 0, {{"accuracy", 0.6}});
  });
  EXPECT_TRUE(coordinator_.evaluations()->WaitForEvaluation(5, kLong, stop_));
  scores.join();
  coordinator_.evaluations()->AcknowledgeEvaluation(3, 0, {{"accuracy", 0.3}});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, 6);
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluation.at("accuracy"), 0.6);
}

TEST_F(CoordinatorTest, WaitForEvaluationEndsWithStop) {
  stop_.Raise();
  EXPECT_FALSE(coordinator_.evaluations()->WaitForEvaluation(5, kLong, stop_));
}

TEST_F(CoordinatorTest, IsAloneWhenAllHaveLeftOrAreLost) {
  EXPECT_TRUE(coordinator_.roster()->WaitUntilAlone(kNoWait));
  Register(kWorker0, 1);
  EXPECT_FALSE(coordinator_.roster()->WaitUntilAlone(kNoWait));
  EXPECT_TRUE(coordinator_.roster()->AnyAlive(Role::kWorker));
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kEvaluator));
  std::thread leaves(
      [&] { EXPECT_EQ(coordinator_.members()->Leave(kWorker0, TestId(1), {}), absl::OkStatus()); });
  EXPECT_TRUE(coordinator_.roster()->WaitUntilAlone(kLong));
  leaves.join();
  Register(kWorker1, 2);
  LoseEveryone();
  EXPECT_TRUE(coordinator_.roster()->WaitUntilAlone(kNoWait));
}

TEST_F(CoordinatorTest, LedgerStateCountsLeasedWorkAsUnfinished) {
  StartTraining(10);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  const v1::JobState state = coordinator_.persistence()->LedgerState();
  EXPECT_EQ(state.global_step(), 0);
  EXPECT_EQ(state.config_hash(), kHash);
  ASSERT_EQ(state.unfinished_size(), 1);
  EXPECT_EQ(state.unfinished(0).end(), 10);
  EXPECT_EQ(state.next_position(), 10);
}

TEST_F(CoordinatorTest, SumsAddUpAndTheLargestStalenessStays) {
  StartTraining(10);
  Register(kWorker0, 1);
  WorkerReport report;
  report.figures.set_steps(2);
  report.figures.set_examples(20);
  report.figures.set_loss_sum(1.5);
  report.figures.set_staleness_sum(3);
  report.figures.set_staleness_max(2);
  report.figures.set_push_retries(1);
  report.figures.set_pull_seconds(0.5);
  report.figures.set_credit_wait_seconds(0.25);
  report.figures.set_bytes_pushed(100);
  report.figures.set_bytes_pulled(200);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), report), absl::OkStatus());
  }
  const CoordinatorStatus status = coordinator_.reports()->GetStatus();
  const v1::WorkerFigures& totals = status.totals;
  EXPECT_EQ(totals.steps(), 4);
  EXPECT_EQ(totals.examples(), 40);
  EXPECT_EQ(totals.loss_sum(), 3.0);
  EXPECT_EQ(totals.staleness_sum(), 6);
  EXPECT_EQ(totals.staleness_max(), 2);
  EXPECT_EQ(totals.push_retries(), 2);
  EXPECT_EQ(totals.pull_seconds(), 1.0);
  EXPECT_EQ(totals.credit_wait_seconds(), 0.5);
  EXPECT_EQ(totals.bytes_pushed(), 200);
  EXPECT_EQ(totals.bytes_pulled(), 400);
  ASSERT_EQ(status.workers.size(), 1u);
  EXPECT_EQ(status.workers.at(kWorker0).staleness_sum(), 6);
  EXPECT_EQ(status.workers.at(kWorker0).push_retries(), 2);
}

TEST_F(CoordinatorTest, SumsOfAWorkerOutliveItsMemberships) {
  StartTraining(10);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker1, TestId(2), Completed(0, 0, 5)),
            absl::OkStatus());
  ASSERT_EQ(coordinator_.members()->Leave(kWorker1, TestId(2), Completed(0, 0, 1)),
            absl::OkStatus());
  Register(kWorker1, 3);
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker1, TestId(3), Completed(0, 0, 3)),
            absl::OkStatus());
  const CoordinatorStatus status = coordinator_.reports()->GetStatus();
  EXPECT_EQ(status.workers.at(kWorker1).steps(), 9);
  EXPECT_EQ(status.totals.steps(), 9);
}

TEST_F(CoordinatorTest, AWorkerThatBeatsButDoesNotStepLosesItsWork) {
  StartTraining(100);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  const std::optional<WorkLease> held = Acquire(kWorker0, 1);
  ASSERT_TRUE(held.has_value());
  const auto beat = [&](absl::Duration time) {
    for (absl::Duration rest = time; rest > absl::ZeroDuration(); rest -= absl::Seconds(1)) {
      clock_.Advance(absl::Seconds(1));
      coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}).IgnoreError();
      EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker1, TestId(2), {}), absl::OkStatus());
      coordinator_.roster()->ExpireLeases();
    }
  };
  beat(StallWatch::kFirstStep);
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive) << "compilers take minutes";
  testing::internal::CaptureStderr();
  beat(absl::Seconds(2));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("worker-0 (host:1) sends heartbeats, but has completed no step for"));
  EXPECT_EQ(StateOf(kWorker0), Member::kLost);
  EXPECT_EQ(StateOf(kWorker1), Member::kAlive) << "it holds nothing";
  coordinator_.roster()->HandOn(coordinator_.roster()->TakeEnded());
  EXPECT_EQ(Acquire(kWorker1, 2)->tickets[0].step, held->tickets[0].step);
}

TEST_F(CoordinatorTest, AWorkerThatAskedForMoreTimeKeepsItsWork) {
  StartTraining(100);
  ASSERT_EQ(coordinator_.members()
                ->Register(kWorker0, TestId(1), kHash, "host:1", {}, "", 0,
                           StallWatch::kFirstStep + absl::Seconds(3))
                .status(),
            absl::OkStatus());
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  const auto beat = [&](absl::Duration time) {
    for (absl::Duration rest = time; rest > absl::ZeroDuration(); rest -= absl::Seconds(1)) {
      coordinator_.roster()->ExpireLeases();
      clock_.Advance(absl::Seconds(1));
      coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}).IgnoreError();
    }
    coordinator_.roster()->ExpireLeases();
  };
  beat(StallWatch::kFirstStep + absl::Seconds(3));
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive);
  beat(absl::Seconds(1));
  EXPECT_EQ(StateOf(kWorker0), Member::kLost);
}

TEST_F(CoordinatorTest, AChiefThatWasFrozenLosesNobody) {
  StartTraining(100);
  Register(kWorker0, 1);
  clock_.Advance(kLease * 100);
  coordinator_.roster()->ExtendLeases(kLease * 100);
  coordinator_.roster()->ExpireLeases();
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive);
  LoseEveryone();
  EXPECT_EQ(StateOf(kWorker0), Member::kLost);
}

TEST_F(CoordinatorTest, NobodyIsGivenUpWhileAServerIsAway) {
  StartTraining(100);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  for (int minute = 0; minute < 60; ++minute) {
    clock_.Advance(absl::Minutes(1));
    EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}), absl::OkStatus());
    coordinator_.roster()->ExcuseSteps();
    coordinator_.roster()->ExpireLeases();
  }
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive);
}

}  // namespace
}  // namespace keelson
