// Coordinators that take over from a predecessor, and the modes in which workers wait for each
// other.
#include <map>
#include <thread>

#include "chief/coordination/coordinator.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr Task kEvaluator = {Role::kEvaluator, 0};

WorkOptions Work(uint64_t first_lease_id) { return {40, 1000, 10, first_lease_id, 77}; }

// One chief after the other, on one clock.
class SuccessionTest : public testing::Test {
 protected:
  SuccessionTest() { NewChief(); }

  void NewChief() {
    Coordinator::Options options;
    options.config_hash = kHash;
    options.lease = kLease;
    options.mode = mode_;
    chief_.emplace(options, &clock_);
    first_lease_id_ += 1'000'000;
  }
  void StartTraining() { chief_->start()->StartTraining({}, WorkLedger(Work(first_lease_id_))); }
  // The chief crashes; another one continues from the job state persisted at the servers.
  void Succeed(const v1::PersistedJobState& persisted) {
    NewChief();
    Resume(persisted);
  }
  void Resume(const v1::PersistedJobState& persisted) {
    auto ledger = WorkLedger::FromPersisted(persisted, Work(first_lease_id_));
    ASSERT_EQ(ledger.status(), absl::OkStatus());
    chief_->start()->Resume({Placement(), {"ps-0:1"}}, *std::move(ledger), persisted);
  }
  // As one that was told an epoch when it was a member, if it was one.
  absl::StatusOr<std::vector<uint64_t>> Register(Task task, uint64_t incarnation,
                                                 const std::vector<HeldLease>& held = {}) {
    auto kept = chief_->members()->Register(task, TestId(incarnation), kHash, "host:1", held, "",
                                            told_[incarnation]);
    if (kept.ok()) told_[incarnation] = chief_->roster()->MemberList().epoch();
    return kept;
  }
  std::optional<WorkLease> Acquire(Task task, uint64_t incarnation,
                                   const WorkerReport& report = {}) {
    const auto lease = chief_->requests()->AcquireWork(task, TestId(incarnation), report, kNoWait);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *lease : std::nullopt;
  }
  // Grants and completes single tickets until the worker's lease has `size` of them.
  WorkLease AcquireSome(Task task, uint64_t incarnation, size_t size) {
    std::optional<WorkLease> lease = Acquire(task, incarnation);
    while (lease.has_value() && lease->tickets.size() < size) {
      lease = Acquire(task, incarnation,
                      Completed(lease->id, static_cast<int64_t>(lease->tickets.size())));
    }
    EXPECT_TRUE(lease.has_value());
    return lease.value_or(WorkLease());
  }
  static HeldLease Held(const WorkLease& lease, int64_t completed) {
    return {lease.id, lease.tickets, completed, lease.attempt};
  }
  int64_t step() { return chief_->reports()->GetStatus().step; }

  ConsistencyMode mode_;
  ManualClock clock_;
  uint64_t first_lease_id_ = 0;
  std::optional<Coordinator> chief_;
  std::map<uint64_t, uint64_t> told_;  // epochs, by incarnation
};

TEST_F(SuccessionTest, WorkersGoOnWhereTheyWere) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  const WorkLease first = AcquireSome(kWorker0, 1, 2);
  const WorkLease second = AcquireSome(kWorker1, 2, 2);
  const int64_t before = step();
  Succeed(chief_->persistence()->PersistedState());
  EXPECT_EQ(step(), before);
  EXPECT_EQ(chief_->control()->phase(), JobPhase::kTraining);
  EXPECT_EQ(chief_->members()->Heartbeat(kWorker0, TestId(1), {}).code(),
            absl::StatusCode::kAborted);
  EXPECT_THAT(Register(kWorker0, 1, {Held(first, 1)}).value(), ElementsAre(first.id));
  EXPECT_EQ(step(), before + 1);
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value()) << "the other is not back";
  EXPECT_THAT(Register(kWorker1, 2, {Held(second, 0)}).value(), ElementsAre(second.id));
  const auto next = Acquire(kWorker0, 1, Completed(first.id, 2));
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->tickets[0].step, second.tickets.back().step + 1);
  EXPECT_EQ(step(), before + 2);
}

TEST_F(SuccessionTest, WhatWasGrantedAfterTheStateIsTakenOn) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  const WorkLease first = *Acquire(kWorker0, 1);
  const WorkLease second = *Acquire(kWorker0, 1, Completed(first.id, 1));
  ASSERT_EQ(step(), 1);
  Succeed(persisted);
  EXPECT_THAT(Register(kWorker0, 1, {Held(first, 1), Held(second, 1)}).value(),
              UnorderedElementsAre(first.id, second.id));
  EXPECT_EQ(step(), 2);
}

TEST_F(SuccessionTest, WhoDoesNotComeBackIsLostAndFenced) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  const WorkLease lost = *Acquire(kWorker0, 1);
  Succeed(chief_->persistence()->PersistedState());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  clock_.Advance(kLease / 2);
  ASSERT_EQ(chief_->members()->Heartbeat(kWorker1, TestId(2), {}), absl::OkStatus());
  EXPECT_FALSE(Acquire(kWorker1, 2).has_value());
  clock_.Advance(kLease / 2);
  chief_->roster()->ExpireLeases();
  EXPECT_NE(Acquire(kWorker1, 2)->tickets, lost.tickets);
  EXPECT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  chief_->roster()->HandOn({1});
  EXPECT_EQ(Acquire(kWorker1, 2)->tickets[0], lost.tickets[0]);
  EXPECT_EQ(Register(kWorker0, 1, {Held(lost, 1)}).status().code(), absl::StatusCode::kAborted);
}

TEST_F(SuccessionTest, AnEvaluatorIsNotWaitedFor) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kEvaluator, 2).ok());
  Succeed(chief_->persistence()->PersistedState());
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  EXPECT_TRUE(Acquire(kWorker0, 1).has_value());
  EXPECT_FALSE(chief_->roster()->WaitUntilAlone(kNoWait));
}

TEST_F(SuccessionTest, WorkOfTheRetiredIsFencedAgain) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lease = *Acquire(kWorker0, 1);
  clock_.Advance(kLease);
  chief_->roster()->ExpireLeases();
  ASSERT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  // The chief crashes before the servers are told.
  Succeed(chief_->persistence()->PersistedState());
  EXPECT_THAT(chief_->roster()->MemberList().members(), IsEmpty());
  EXPECT_EQ(Register(kWorker0, 1, {Held(lease, 1)}).status().code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  EXPECT_NE(Acquire(kWorker1, 2)->tickets, lease.tickets);
  EXPECT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  chief_->roster()->HandOn({1});
  EXPECT_EQ(Acquire(kWorker1, 2)->tickets[0], lease.tickets[0]);
}

TEST_F(SuccessionTest, ALaterLeaseOnTheSameWorkEndsTheOlderHolder) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  const WorkLease lost = *Acquire(kWorker0, 1);
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  // Afterwards the predecessor retires worker-0's membership, and hands its work on.
  clock_.Advance(kLease);
  ASSERT_EQ(chief_->members()->Heartbeat(kWorker1, TestId(2), {}), absl::OkStatus());
  chief_->roster()->ExpireLeases();
  chief_->roster()->HandOn(chief_->roster()->TakeEnded());
  const WorkLease taken = *Acquire(kWorker1, 2);
  ASSERT_EQ(taken.tickets, lost.tickets);
  Succeed(persisted);
  EXPECT_THAT(Register(kWorker1, 2, {Held(taken, 0)}).value(), ElementsAre(taken.id));
  EXPECT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  EXPECT_EQ(Register(kWorker0, 1, {Held(lost, 1)}).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(step(), 0);
}

TEST_F(SuccessionTest, AClaimWaitsUntilItIsKnownHowTheJobGoesOn) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lease = *Acquire(kWorker0, 1);
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  NewChief();
  EXPECT_EQ(Register(kWorker0, 1, {Held(lease, 1)}).status().code(),
            absl::StatusCode::kUnavailable);
  Resume(persisted);
  EXPECT_THAT(Register(kWorker0, 1, {Held(lease, 1)}).value(), ElementsAre(lease.id));
}

TEST_F(SuccessionTest, WhoRegistersEarlyHoldsNothing) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lost = *Acquire(kWorker0, 1);  // the answer never arrives
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  NewChief();
  EXPECT_EQ(Register(kWorker0, 1).status().code(), absl::StatusCode::kUnavailable);
  told_.clear();  // it never got its model
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  Resume(persisted);
  EXPECT_EQ(Acquire(kWorker0, 1)->tickets, lost.tickets);
}

TEST_F(SuccessionTest, AJobThatStartsOverKnowsNoOldLeases) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lease = *Acquire(kWorker0, 1);
  NewChief();
  StartTraining();
  // Its sequences are forgotten, so it comes back as somebody else.
  EXPECT_EQ(Register(kWorker0, 1, {Held(lease, 1)}).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Register(kWorker0, 2).ok());
  EXPECT_EQ(step(), 0);
}

TEST_F(SuccessionTest, AMemberThatTheStateDoesNotKnowIsTakenOn) {
  StartTraining();
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lease = *Acquire(kWorker0, 1);
  Succeed(persisted);
  EXPECT_THAT(chief_->roster()->MemberList().members(), IsEmpty());
  EXPECT_GT(chief_->roster()->MemberList().epoch(), told_[1]);
  EXPECT_THAT(Register(kWorker0, 1, {Held(lease, 1)}).value(), ElementsAre(lease.id));
  EXPECT_EQ(chief_->roster()->MemberList().members_size(), 1);
}

TEST_F(SuccessionTest, TheMembersAreThoseWhoLiveAndThoseWhoMayComeBack) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  ASSERT_EQ(chief_->members()->Leave(kWorker1, TestId(2), {}), absl::OkStatus());
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  NewChief();
  chief_->start()->RaiseMemberEpoch(persisted.member_epoch() + 7);  // a server knows it
  ASSERT_TRUE(Register(kEvaluator, 3).ok());
  Resume(persisted);
  const v1::MemberList list = chief_->roster()->MemberList();
  EXPECT_GT(list.epoch(), persisted.member_epoch() + 1000);
  ASSERT_EQ(list.members_size(), 2);
  EXPECT_EQ(list.members(0).incarnation(), 1u);
  EXPECT_EQ(list.members(0).membership_secret(), TestId(1).secret);
  EXPECT_EQ(list.members(0).task().role(), v1::ROLE_WORKER);
  EXPECT_EQ(list.members(1).incarnation(), 3u);
  EXPECT_EQ(list.members(1).membership_secret(), TestId(3).secret);
  EXPECT_EQ(list.members(1).task().role(), v1::ROLE_EVALUATOR);
}

TEST_F(SuccessionTest, StateTellsWhatASuccessorNeeds) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  ASSERT_EQ(chief_->members()->Leave(kWorker1, TestId(2), {}), absl::OkStatus());
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  chief_->evaluations()->SetSnapshotStep(5);
  chief_->evaluations()->AcknowledgeEvaluation(4, 0, {});
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  EXPECT_EQ(persisted.job().config_hash(), kHash);
  EXPECT_EQ(persisted.job().job_id(), 77u);
  EXPECT_EQ(persisted.job().state_version(), chief_->persistence()->versions().current);
  EXPECT_TRUE(persisted.job().mode().has_async());
  ASSERT_EQ(persisted.members_size(), 1);
  EXPECT_EQ(persisted.members(0).incarnation(), 1u);
  EXPECT_EQ(persisted.members(0).membership_secret(), TestId(1).secret);
  EXPECT_EQ(persisted.members(0).peer(), "host:1");
  EXPECT_EQ(persisted.leases_size(), 1);
  EXPECT_EQ(persisted.member_epoch(), chief_->roster()->MemberList().epoch());
  EXPECT_GT(persisted.attempt(), 0u);
  EXPECT_FALSE(persisted.mode_pending());
  Succeed(persisted);
  EXPECT_EQ(chief_->reports()->GetStatus().snapshot_step, 5);
  EXPECT_EQ(chief_->reports()->GetStatus().evaluated_step, 4);
  EXPECT_GT(chief_->persistence()->versions().current, persisted.job().state_version());
}

TEST_F(SuccessionTest, BeforeTrainingThereIsNoState) {
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  EXPECT_EQ(chief_->persistence()->PersistedState().ByteSizeLong(), 0u);
  EXPECT_FALSE(chief_->persistence()->StateUrgent());
  EXPECT_EQ(chief_->persistence()->versions().current, 0u);
}

TEST_F(SuccessionTest, WhatIsUrgentIsWaitedFor) {
  constexpr absl::Duration kAtOnce = -absl::InfiniteDuration();
  StopSignal stop;
  StartTraining();
  chief_->persistence()->WaitForUrgent(kAtOnce, stop);
  const absl::Duration again = clock_.Monotonic() + absl::Seconds(1);
  std::thread moves([&] { clock_.Advance(absl::Seconds(1)); });
  chief_->persistence()->WaitForUrgent(again, stop);
  moves.join();
  EXPECT_GE(clock_.Monotonic(), again);
  chief_->persistence()->NoteStored(chief_->persistence()->PersistedState().job().state_version());
  std::thread joins([&] { EXPECT_TRUE(Register(kWorker0, 1).ok()); });
  chief_->persistence()->WaitForUrgent(kAtOnce, stop);
  joins.join();
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  std::thread leaves(
      [&] { EXPECT_EQ(chief_->members()->Leave(kWorker0, TestId(1), {}), absl::OkStatus()); });
  chief_->persistence()->WaitForUrgent(absl::InfiniteDuration(), stop);
  leaves.join();
  EXPECT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  std::thread stops([&] { stop.Raise(); });
  chief_->persistence()->WaitForUrgent(absl::InfiniteDuration(), stop);
  stops.join();
}

TEST_F(SuccessionTest, AJoinIsStoredAtOnce) {
  StartTraining();
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  chief_->persistence()->NoteStored(chief_->persistence()->PersistedState().job().state_version());
  EXPECT_FALSE(chief_->persistence()->StateUrgent());
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  chief_->persistence()->NoteStored(persisted.job().state_version());
  EXPECT_FALSE(chief_->persistence()->StateUrgent()) << "work alone is not urgent";
  EXPECT_EQ(chief_->persistence()->versions().stored, persisted.job().state_version());
  EXPECT_GT(chief_->persistence()->versions().current, chief_->persistence()->versions().stored);
  chief_->persistence()->NoteStored(1);
  EXPECT_EQ(chief_->persistence()->versions().stored, persisted.job().state_version());
}

// ---- Modes.

class SyncCoordinatorTest : public SuccessionTest {
 protected:
  SyncCoordinatorTest() {
    mode_ = ConsistencyMode::Parse("sync:2").value();
    NewChief();
    StartTraining();
    EXPECT_TRUE(Register(kWorker0, 1).ok());
    EXPECT_TRUE(Register(kWorker1, 2).ok());
  }
  void Stage(Task task, uint64_t incarnation, const WorkLease& lease) {
    ASSERT_EQ(chief_->members()->Heartbeat(task, TestId(incarnation), Completed(lease.id, 1)),
              absl::OkStatus());
  }
};

TEST_F(SyncCoordinatorTest, AStepIsARound) {
  const WorkLease first = *Acquire(kWorker0, 1);
  const WorkLease second = *Acquire(kWorker1, 2);
  EXPECT_EQ(first.tickets[0].step, second.tickets[0].step);
  EXPECT_GT(first.attempt, 0u);
  EXPECT_TRUE(chief_->members()->Admit(kWorker0, TestId(1), first.id, 0, first.attempt).value());
  EXPECT_FALSE(chief_->members()->Admit(kWorker0, TestId(1), second.id, 0, first.attempt).value());
  EXPECT_EQ(
      chief_->members()->Admit(kWorker0, TestId(9), first.id, 0, first.attempt).status().code(),
      absl::StatusCode::kAborted);
  Stage(kWorker0, 1, first);
  EXPECT_EQ(chief_->rounds()->WaitForRound(kNoWait), std::nullopt);
  std::optional<RoundQueue::Round> round;
  std::thread commits([&] { round = chief_->rounds()->WaitForRound(kLong); });
  Stage(kWorker1, 2, second);
  commits.join();
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(*round, (RoundQueue::Round{0, first.attempt, 2}));
  EXPECT_EQ(step(), 0);
  const v1::JobState state = chief_->persistence()->LedgerState();
  EXPECT_EQ(state.unfinished_size(), 2);
  EXPECT_EQ(state.next_position(), 20);
  chief_->rounds()->RoundCommitted(*round);
  EXPECT_EQ(step(), 1);
  EXPECT_EQ(Acquire(kWorker0, 1)->tickets[0].step, 1);
}

TEST_F(SyncCoordinatorTest, AFailedRoundIsTriedAgain) {
  const WorkLease first = *Acquire(kWorker0, 1);
  Stage(kWorker0, 1, first);
  Stage(kWorker1, 2, *Acquire(kWorker1, 2));
  const auto round = chief_->rounds()->WaitForRound(kNoWait);
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(chief_->rounds()->WaitForRound(kNoWait), round) << "until it is reported";
  chief_->rounds()->RoundFailed(*round);
  EXPECT_EQ(chief_->rounds()->WaitForRound(kNoWait), std::nullopt);
  const WorkLease again = *Acquire(kWorker1, 2);
  EXPECT_EQ(again.tickets, first.tickets);
  EXPECT_GT(again.attempt, first.attempt);
}

TEST_F(SyncCoordinatorTest, AWorkerThatDiesDoesNotStallTheStep) {
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  const WorkLease old = *Acquire(kWorker1, 2);
  Stage(kWorker1, 2, old);
  clock_.Advance(kLease);
  ASSERT_EQ(chief_->members()->Heartbeat(kWorker1, TestId(2), {}), absl::OkStatus());
  chief_->roster()->ExpireLeases();
  chief_->roster()->HandOn(chief_->roster()->TakeEnded());
  // Alone, it computes both gradients of the new attempt.
  const WorkLease first = *Acquire(kWorker1, 2);
  const WorkLease second = *Acquire(kWorker1, 2);
  EXPECT_GT(first.attempt, old.attempt);
  EXPECT_FALSE(Acquire(kWorker1, 2).has_value());
  Stage(kWorker1, 2, first);
  Stage(kWorker1, 2, second);
  EXPECT_TRUE(chief_->rounds()->WaitForRound(kNoWait).has_value());
}

TEST_F(SyncCoordinatorTest, ASuccessorBeginsANewAttempt) {
  const WorkLease first = *Acquire(kWorker0, 1);
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  NewChief();
  chief_->start()->RaiseAttempt(first.attempt + 7);
  chief_->start()->NoteCommittedRounds(3);
  Resume(persisted);
  EXPECT_EQ(step(), 4);
  EXPECT_EQ(chief_->control()->mode().ToString(), "sync:2");
  EXPECT_THAT(Register(kWorker0, 1, {Held(first, 1)}).value(), IsEmpty());
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  const WorkLease again = *Acquire(kWorker0, 1);
  EXPECT_GT(again.attempt, first.attempt + 8);
  EXPECT_EQ(again.tickets[0], (WorkTicket{4, 0, 80, 90}));
}

TEST_F(SyncCoordinatorTest, AttemptsThatNobodyHasHeardOfDoNotComeAgain) {
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  WorkLease newest = *Acquire(kWorker0, 1);
  for (int i = 0; i < 3; ++i) {
    Stage(kWorker0, 1, newest);
    Stage(kWorker1, 2, *Acquire(kWorker1, 2));
    chief_->rounds()->RoundFailed(*chief_->rounds()->WaitForRound(kNoWait));
    newest = *Acquire(kWorker0, 1);
  }
  Succeed(persisted);
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  EXPECT_GT(Acquire(kWorker0, 1)->attempt, newest.attempt);
}

TEST_F(SyncCoordinatorTest, AttemptsOfALaterChiefAreGreater) {
  const WorkLease first = *Acquire(kWorker0, 1);
  clock_.Advance(absl::Seconds(2));
  NewChief();
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 3).ok());
  EXPECT_GT(Acquire(kWorker0, 3)->attempt, first.attempt);
}

TEST_F(SuccessionTest, TheModeIsChangedWhileTheJobTrains) {
  const ConsistencyMode bounded = ConsistencyMode::Parse("ssp:3").value();
  EXPECT_EQ(chief_->control()->SetMode(bounded),
            absl::FailedPreconditionError("consistency mode: the job does not train"));
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  EXPECT_EQ(chief_->control()->mode(), ConsistencyMode());
  chief_->persistence()->NoteStored(chief_->persistence()->versions().current);
  EXPECT_EQ(chief_->control()->SetMode(bounded), absl::OkStatus());
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  EXPECT_EQ(chief_->control()->mode(), bounded);
  const WorkLease lease = *Acquire(kWorker0, 1);
  EXPECT_TRUE(lease.fresh_values);
  EXPECT_EQ(chief_->control()->SetMode(ConsistencyMode::Parse("sync:1").value()), absl::OkStatus());
  EXPECT_EQ(chief_->control()->mode(), bounded);
  EXPECT_EQ(chief_->reports()->GetStatus().next_mode->ToString(), "sync:1");
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value());
  EXPECT_TRUE(Acquire(kWorker0, 1, Completed(lease.id, 1)).has_value());
  EXPECT_EQ(chief_->reports()->GetStatus().mode.ToString(), "sync:1");
  EXPECT_EQ(chief_->reports()->GetStatus().next_mode, std::nullopt);
  chief_->control()->SetPhase(JobPhase::kFinishing);
  EXPECT_EQ(chief_->control()->SetMode(bounded).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SuccessionTest, TheModeOutlivesTheChiefButNotTheConfiguration) {
  StartTraining();
  ASSERT_EQ(chief_->control()->SetMode(ConsistencyMode::Parse("ssp:3").value()), absl::OkStatus());
  v1::JobState state = chief_->persistence()->LedgerState();
  NewChief();
  chief_->start()->StartTraining({}, WorkLedger::FromState(state, Work(1)).value());
  EXPECT_EQ(chief_->control()->mode().ToString(), "ssp:3");
  state.set_config_hash(kHash + 1);
  NewChief();
  chief_->start()->StartTraining({}, WorkLedger::FromState(state, Work(1)).value());
  EXPECT_EQ(chief_->control()->mode().ToString(), "async");
  // A mode that makes no sense is not taken on.
  state.set_config_hash(kHash);
  state.mutable_mode()->mutable_bounded_staleness()->set_staleness(-1);
  NewChief();
  chief_->start()->StartTraining({}, WorkLedger::FromState(state, Work(1)).value());
  EXPECT_EQ(chief_->control()->mode().ToString(), "async");
}

}  // namespace
}  // namespace keelson
