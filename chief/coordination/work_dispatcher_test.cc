#include "chief/coordination/work_dispatcher.h"

#include "chief/coordination/work_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kFirstAttempt = 40;

WorkDispatcher Dispatcher(absl::string_view mode, int64_t max_steps = 20) {
  return WorkDispatcher(WorkLedger({max_steps, 1000, 10}), ConsistencyMode::Parse(mode).value(),
                        kFirstAttempt);
}

// A lease of one ticket, done.
void DoOne(WorkDispatcher* work, uint64_t worker) {
  const auto lease = work->Grant(worker, 1, 2);
  ASSERT_TRUE(lease.has_value());
  ASSERT_EQ(work->Complete(worker, lease->id, 1), absl::OkStatus());
}

// A ticket of a round, its gradient at all servers.
void StageOne(WorkDispatcher* work, uint64_t worker, int64_t alive = 2) {
  const auto lease = work->Grant(worker, 1, alive);
  ASSERT_TRUE(lease.has_value());
  ASSERT_TRUE(work->Admit(worker, lease->id, lease->tickets[0].step, lease->attempt));
  ASSERT_EQ(work->Complete(worker, lease->id, 1), absl::OkStatus());
}

TEST(WorkDispatcherTest, AsyncLeasesAreTheLedgers) {
  WorkDispatcher work = Dispatcher("async");
  const auto lease = work.Grant(kAlice, 3, 1);
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(lease->tickets.size(), 3u);
  EXPECT_EQ(lease->attempt, 0u);
  EXPECT_FALSE(lease->contested);
  EXPECT_FALSE(lease->fresh_values);
  EXPECT_EQ(work.Complete(kAlice, lease->id, 2), absl::OkStatus());
  EXPECT_EQ(work.ledger().completed_steps(), 2);
  EXPECT_EQ(work.Release(kAlice), 1);
  EXPECT_EQ(work.Complete(kAlice, lease->id, 3).code(), absl::StatusCode::kAborted);
}

TEST(WorkDispatcherTest, NothingAfterTheLastStep) {
  for (const char* mode : {"async", "ssp:1", "sync:1"}) {
    WorkDispatcher work = Dispatcher(mode, 0);
    EXPECT_EQ(work.Grant(kAlice, 1, 1), std::nullopt) << mode;
  }
}

TEST(WorkDispatcherTest, ABoundLimitsLeases) {
  WorkDispatcher work = Dispatcher("ssp:2");
  const auto alices = work.Grant(kAlice, 10, 2);
  ASSERT_TRUE(alices.has_value());
  EXPECT_EQ(alices->tickets.size(), 3u);
  EXPECT_TRUE(alices->fresh_values);
  EXPECT_EQ(work.Grant(kAlice, 10, 2), std::nullopt);
  DoOne(&work, kBob);
  ASSERT_EQ(work.Complete(kAlice, alices->id, 3), absl::OkStatus());
  // Bob has done one; Alice may be two ahead of that.
  EXPECT_EQ(work.Grant(kAlice, 10, 2)->tickets.size(), 1u);
  EXPECT_EQ(work.Grant(kAlice, 10, 2), std::nullopt);
  work.Forget(kBob);
  EXPECT_TRUE(work.Grant(kAlice, 10, 1).has_value());
}

TEST(WorkDispatcherTest, ARoundCountsWhenItIsCommitted) {
  WorkDispatcher work = Dispatcher("sync:2");
  const auto alices = work.Grant(kAlice, 10, 2);
  ASSERT_TRUE(alices.has_value());
  EXPECT_THAT(alices->tickets, ElementsAre(WorkTicket{0, 0, 0, 10}));
  EXPECT_EQ(alices->attempt, kFirstAttempt);
  EXPECT_TRUE(alices->fresh_values);
  EXPECT_FALSE(alices->contested);
  StageOne(&work, kBob);
  EXPECT_EQ(work.StagedRound(), std::nullopt);
  ASSERT_EQ(work.Complete(kAlice, alices->id, 1), absl::OkStatus());
  EXPECT_EQ(work.Complete(kAlice, alices->id, 1), absl::OkStatus());
  EXPECT_EQ(work.ledger().completed_steps(), 0);
  EXPECT_EQ(work.Grant(kAlice, 10, 2), std::nullopt);
  const auto round = work.StagedRound();
  EXPECT_EQ(round, (SyncRounds::Round{0, kFirstAttempt, 2}));
  EXPECT_TRUE(work.RoundCommitted(*round));
  EXPECT_FALSE(work.RoundCommitted(*round));
  EXPECT_EQ(work.ledger().completed_steps(), 1);
  EXPECT_THAT(work.Grant(kAlice, 1, 2)->tickets, ElementsAre(WorkTicket{1, 0, 20, 30}));
  // A late report of the round before.
  EXPECT_EQ(work.Complete(kAlice, alices->id, 1), absl::OkStatus());
}

TEST(WorkDispatcherTest, ATicketSaysWhatComesBeforeAndAfterIt) {
  WorkDispatcher work = Dispatcher("sync:2");
  const auto first = work.Grant(kAlice, 10, 2);
  EXPECT_TRUE(first->last_of_step);
  EXPECT_FALSE(first->follows_round);
  ASSERT_EQ(work.Complete(kAlice, first->id, 1), absl::OkStatus());
  StageOne(&work, kBob);
  ASSERT_TRUE(work.RoundCommitted(*work.StagedRound()));
  const auto second = work.Grant(kAlice, 10, 1);
  EXPECT_FALSE(second->last_of_step) << "she is alone, and gets another one";
  EXPECT_TRUE(second->follows_round);
}

TEST(WorkDispatcherTest, ATicketOfAPlaceHasAnOrder) {
  WorkDispatcher work = Dispatcher("sync:3");
  EXPECT_EQ(work.Grant(kAlice, 10, 2)->order, 0u);
  const auto bobs = work.Grant(kBob, 10, 2, /*place=*/1);
  EXPECT_EQ(bobs->order, 2u);
  EXPECT_THAT(bobs->tickets, ElementsAre(WorkTicket{0, 0, 10, 20}));
  EXPECT_EQ(work.Grant(kAlice, 10, 2, /*place=*/0)->order, 3u);
  WorkDispatcher asynchronous = Dispatcher("async");
  EXPECT_EQ(asynchronous.Grant(kAlice, 10, 2, /*place=*/0)->order, 0u);
}

TEST(WorkDispatcherTest, AFailedRoundIsANewAttemptOnTheSameRecords) {
  WorkDispatcher work = Dispatcher("sync:1");
  StageOne(&work, kAlice, 1);
  const auto round = work.StagedRound();
  ASSERT_TRUE(round.has_value());
  EXPECT_FALSE(work.RoundFailed({round->step + 1, round->attempt, 1}));
  EXPECT_TRUE(work.RoundFailed(*round));
  EXPECT_EQ(work.StagedRound(), std::nullopt);
  EXPECT_FALSE(work.RoundCommitted(*round));
  const auto again = work.Grant(kAlice, 1, 1);
  ASSERT_TRUE(again.has_value());
  EXPECT_THAT(again->tickets, ElementsAre(WorkTicket{0, 0, 0, 10}));
  EXPECT_EQ(again->attempt, kFirstAttempt + 1);
}

TEST(WorkDispatcherTest, ARoundThatAPredecessorCommittedLateIsDone) {
  WorkDispatcher work = Dispatcher("sync:2");
  ASSERT_TRUE(work.Grant(kAlice, 1, 2).has_value());
  EXPECT_FALSE(work.NoteForeignCommit(-1));
  EXPECT_TRUE(work.NoteForeignCommit(0)) << "its pushes are refused from now on";
  EXPECT_EQ(work.ledger().completed_steps(), 1);
  EXPECT_THAT(work.Grant(kAlice, 1, 2)->tickets, ElementsAre(WorkTicket{1, 0, 0, 10}));
  EXPECT_FALSE(work.NoteForeignCommit(0));
}

TEST(WorkDispatcherTest, ACommitThatThisChiefAskedForIsNotForeign) {
  WorkDispatcher work = Dispatcher("sync:1");
  StageOne(&work, kAlice, 1);
  EXPECT_FALSE(work.NoteForeignCommit(0));
  EXPECT_TRUE(work.RoundCommitted(*work.StagedRound()));
}

TEST(WorkDispatcherTest, ALostAdmittedTicketIsANewAttempt) {
  WorkDispatcher work = Dispatcher("sync:2");
  ASSERT_TRUE(work.Grant(kAlice, 1, 2).has_value());
  StageOne(&work, kBob);
  work.Release(kAlice);
  EXPECT_EQ(work.StagedRound(), std::nullopt);
  StageOne(&work, kBob);
  StageOne(&work, kCarol);
  EXPECT_EQ(work.StagedRound(), (SyncRounds::Round{0, kFirstAttempt + 1, 2}));
  // Attempts never fall.
  ASSERT_TRUE(work.RoundCommitted(*work.StagedRound()));
  EXPECT_EQ(work.Grant(kBob, 1, 2)->attempt, kFirstAttempt + 1);
}

TEST(WorkDispatcherTest, ATicketThatAServerRefusedIsANewAttempt) {
  WorkDispatcher work = Dispatcher("sync:2");
  const auto refused = work.Grant(kAlice, 1, 2);
  ASSERT_TRUE(refused.has_value());
  StageOne(&work, kBob);
  EXPECT_EQ(work.Grant(kAlice, 1, 2), std::nullopt) << "the chief waits for its gradient";
  EXPECT_FALSE(work.NoteRefused(kBob, refused->id, 0, kFirstAttempt)) << "it is not Bob's";
  EXPECT_FALSE(work.NoteRefused(kAlice, refused->id, 1, kFirstAttempt)) << "not this step";
  EXPECT_FALSE(work.NoteRefused(kAlice, refused->id, 0, kFirstAttempt - 1)) << "nor this attempt";
  EXPECT_TRUE(work.NoteRefused(kAlice, refused->id, 0, kFirstAttempt));
  EXPECT_FALSE(work.NoteRefused(kAlice, refused->id, 0, kFirstAttempt)) << "told again";
  StageOne(&work, kAlice);
  StageOne(&work, kBob);
  EXPECT_EQ(work.StagedRound(), (SyncRounds::Round{0, kFirstAttempt + 1, 2}));
}

TEST(WorkDispatcherTest, AStagedTicketWasRefusedByNobody) {
  WorkDispatcher work = Dispatcher("sync:2");
  const auto staged = work.Grant(kAlice, 1, 2);
  ASSERT_EQ(work.Complete(kAlice, staged->id, 1), absl::OkStatus());
  EXPECT_FALSE(work.NoteRefused(kAlice, staged->id, 0, kFirstAttempt));
  StageOne(&work, kBob);
  EXPECT_EQ(work.StagedRound(), (SyncRounds::Round{0, kFirstAttempt, 2}));
}

TEST(WorkDispatcherTest, DroppedRecordsAreHandedOutAgain) {
  WorkDispatcher work = Dispatcher("sync:1/2");
  const auto alices = work.Grant(kAlice, 1, 2);
  const auto bobs = work.Grant(kBob, 1, 2);
  ASSERT_TRUE(alices.has_value() && bobs.has_value());
  EXPECT_TRUE(alices->contested);
  EXPECT_TRUE(work.Admit(kBob, bobs->id, 0, bobs->attempt));
  EXPECT_FALSE(work.Admit(kAlice, alices->id, 0, alices->attempt));
  EXPECT_FALSE(work.Admit(kBob, bobs->id, 1, bobs->attempt));
  EXPECT_EQ(work.Complete(kAlice, alices->id, 1),
            absl::InvalidArgumentError("work lease 1: completed: expected 0, or 1 after it was "
                                       "admitted, found 1"));
  EXPECT_EQ(work.Complete(kAlice, alices->id, 0), absl::OkStatus());
  ASSERT_EQ(work.Complete(kBob, bobs->id, 1), absl::OkStatus());
  ASSERT_TRUE(work.RoundCommitted(*work.StagedRound()));
  EXPECT_THAT(work.Grant(kBob, 1, 2)->tickets, ElementsAre(WorkTicket{1, 0, 0, 10}));
}

TEST(WorkDispatcherTest, ARoundInTheMiddleIsUnfinished) {
  WorkDispatcher work = Dispatcher("sync:2");
  StageOne(&work, kAlice);
  const v1::JobState state = work.ToState();
  EXPECT_EQ(state.global_step(), 0);
  ASSERT_EQ(state.unfinished_size(), 2);
  EXPECT_EQ(state.next_position(), 20);
  EXPECT_EQ(ConsistencyMode::FromProto(state.mode())->ToString(), "sync:2");
}

// ---- Changes of the mode.

TEST(ModeSwitchTest, BetweenAsyncAndBoundedAtOnce) {
  WorkDispatcher work = Dispatcher("async");
  const auto lease = work.Grant(kAlice, 3, 1);
  work.SetMode(ConsistencyMode::Parse("ssp:4").value());
  EXPECT_EQ(work.mode().ToString(), "ssp:4");
  EXPECT_EQ(work.next_mode(), std::nullopt);
  // The three that she holds count.
  EXPECT_EQ(work.Grant(kAlice, 9, 1)->tickets.size(), 2u);
  work.SetMode(ConsistencyMode());
  EXPECT_EQ(work.Grant(kAlice, 9, 1)->tickets.size(), 9u);
  EXPECT_EQ(work.Complete(kAlice, lease->id, 3), absl::OkStatus());
}

TEST(ModeSwitchTest, SynchronousWaitsForTheLeases) {
  WorkDispatcher work = Dispatcher("async");
  const auto alices = work.Grant(kAlice, 2, 2);
  const auto bobs = work.Grant(kBob, 1, 2);
  work.SetMode(ConsistencyMode::Parse("sync:2").value());
  EXPECT_EQ(work.mode().ToString(), "async");
  EXPECT_EQ(work.next_mode()->ToString(), "sync:2");
  // A successor goes on with what was asked for.
  EXPECT_EQ(ConsistencyMode::FromProto(work.ToState().mode())->ToString(), "sync:2");
  EXPECT_EQ(work.Grant(kAlice, 1, 2), std::nullopt);
  ASSERT_EQ(work.Complete(kAlice, alices->id, 2), absl::OkStatus());
  EXPECT_EQ(work.Grant(kAlice, 1, 2), std::nullopt);
  // Bob is lost; what he had comes back.
  EXPECT_EQ(work.Release(kBob), 1);
  EXPECT_EQ(work.mode().ToString(), "sync:2");
  EXPECT_THAT(work.Grant(kAlice, 1, 1)->tickets, ElementsAre(WorkTicket{2, 0, 20, 30}));
  EXPECT_EQ(work.Complete(kBob, bobs->id, 1).code(), absl::StatusCode::kAborted);
}

TEST(ModeSwitchTest, ARoundIsBroughtToItsEnd) {
  WorkDispatcher work = Dispatcher("sync:2");
  StageOne(&work, kAlice);
  work.SetMode(ConsistencyMode());
  EXPECT_EQ(work.mode().ToString(), "sync:2");
  StageOne(&work, kBob);
  ASSERT_TRUE(work.RoundCommitted(*work.StagedRound()));
  EXPECT_EQ(work.mode().ToString(), "async");
  EXPECT_THAT(work.Grant(kAlice, 2, 2)->tickets,
              ElementsAre(WorkTicket{1, 0, 20, 30}, WorkTicket{2, 0, 30, 40}));
}

TEST(ModeSwitchTest, ARoundThatNobodyWorksOnIsAbandoned) {
  WorkDispatcher work = Dispatcher("sync:2");
  ASSERT_TRUE(work.Grant(kAlice, 1, 2).has_value());
  work.SetMode(ConsistencyMode::Parse("sync:1").value());
  EXPECT_EQ(work.mode().ToString(), "sync:2");
  work.Release(kAlice);
  EXPECT_EQ(work.mode().ToString(), "sync:1");
  const auto lease = work.Grant(kBob, 1, 1);
  ASSERT_TRUE(lease.has_value());
  EXPECT_THAT(lease->tickets, ElementsAre(WorkTicket{0, 0, 0, 10}));
  EXPECT_EQ(lease->attempt, kFirstAttempt + 1);
}

TEST(ModeSwitchTest, AModeThatIsHeldStays) {
  WorkDispatcher work = Dispatcher("sync:2");
  work.HoldMode();
  work.HoldMode();
  work.SetMode(ConsistencyMode());
  work.ReleaseMode();
  EXPECT_EQ(work.mode().ToString(), "sync:2");
  EXPECT_EQ(work.Grant(kAlice, 1, 1), std::nullopt);
  work.ReleaseMode();
  EXPECT_EQ(work.mode().ToString(), "async");
  EXPECT_TRUE(work.Grant(kAlice, 1, 1).has_value());
}

TEST(ModeSwitchTest, PeriodsOfSynchronousModeHaveNumbers) {
  WorkDispatcher work = Dispatcher("sync:2");
  EXPECT_EQ(work.sync_period(), 1u);
  work.SetMode(ConsistencyMode::Parse("sync:1").value());
  EXPECT_EQ(work.sync_period(), 1u);
  work.SetMode(ConsistencyMode());
  EXPECT_EQ(work.sync_period(), 0u);
  work.SetMode(ConsistencyMode::Parse("sync:2").value());
  EXPECT_EQ(work.sync_period(), 2u);
}

TEST(ModeSwitchTest, TheOldModeAgainChangesNothing) {
  WorkDispatcher work = Dispatcher("async");
  ASSERT_TRUE(work.Grant(kAlice, 1, 1).has_value());
  work.SetMode(ConsistencyMode::Parse("sync:2").value());
  work.SetMode(ConsistencyMode());
  EXPECT_EQ(work.next_mode(), std::nullopt);
  EXPECT_TRUE(work.Grant(kAlice, 1, 1).has_value());
}

// ---- Succession.

TEST(EarlyEndTest, WhatIsLeasedIsDoneAndNothingElse) {
  for (const char* mode : {"async", "ssp:2"}) {
    WorkDispatcher work = Dispatcher(mode);
    const auto lease = work.Grant(kAlice, 2, 1);
    ASSERT_TRUE(lease.has_value());
    const uint64_t version = work.ledger().version();
    work.EndEarly("good enough");
    work.EndEarly("another reason");
    EXPECT_GT(work.ledger().version(), version) << "the ledger has changed";
    EXPECT_EQ(work.end_reason(), "good enough");
    EXPECT_EQ(work.Grant(kBob, 1, 2), std::nullopt);
    EXPECT_FALSE(work.Done());
    ASSERT_EQ(work.Complete(kAlice, lease->id, 1), absl::OkStatus());
    EXPECT_FALSE(work.Done());
    EXPECT_EQ(work.Release(kAlice), 1);
    EXPECT_TRUE(work.Done()) << mode;
    EXPECT_EQ(work.Grant(kBob, 1, 2), std::nullopt);
    EXPECT_EQ(work.ledger().completed_steps(), 1);
    EXPECT_EQ(work.ToState().end_reason(), "good enough");
    v1::PersistedJobState persisted;
    work.ToPersisted(&persisted);
    EXPECT_EQ(persisted.job().end_reason(), "good enough");
  }
}

TEST(PauseTest, WhatIsLeasedIsDoneAndTrainingIsNotOver) {
  for (const char* mode : {"async", "ssp:2"}) {
    WorkDispatcher work = Dispatcher(mode);
    const auto lease = work.Grant(kAlice, 1, 1);
    ASSERT_TRUE(lease.has_value());
    work.Pause();
    EXPECT_FALSE(work.Idle());
    EXPECT_EQ(work.Grant(kBob, 1, 2), std::nullopt) << mode;
    ASSERT_EQ(work.Complete(kAlice, lease->id, 1), absl::OkStatus());
    EXPECT_TRUE(work.Idle());
    EXPECT_FALSE(work.Done());
    EXPECT_EQ(work.Grant(kAlice, 1, 2), std::nullopt) << mode;
  }
}

TEST(PauseTest, ARoundUnderWayIsCompletedAndNoOtherBegun) {
  WorkDispatcher work = Dispatcher("sync:2");
  StageOne(&work, kAlice);
  work.Pause();
  EXPECT_FALSE(work.Idle());
  StageOne(&work, kBob);
  ASSERT_TRUE(work.RoundCommitted(*work.StagedRound()));
  EXPECT_TRUE(work.Idle());
  EXPECT_EQ(work.Grant(kAlice, 1, 2), std::nullopt);
}

TEST(PauseTest, ALostWorkersRoundIsDropped) {
  WorkDispatcher work = Dispatcher("sync:2");
  ASSERT_TRUE(work.Grant(kAlice, 1, 2).has_value());
  work.Pause();
  work.Release(kAlice);
  EXPECT_TRUE(work.Idle());
}

TEST(EarlyEndTest, ARoundUnderWayIsBroughtToItsEnd) {
  WorkDispatcher work = Dispatcher("sync:2");
  StageOne(&work, kAlice);
  work.EndEarly("good enough");
  EXPECT_FALSE(work.Done());
  StageOne(&work, kBob);
  const auto round = work.StagedRound();
  ASSERT_TRUE(round.has_value());
  ASSERT_TRUE(work.RoundCommitted(*round));
  EXPECT_TRUE(work.Done());
  EXPECT_EQ(work.ledger().completed_steps(), 1);
  EXPECT_EQ(work.Grant(kAlice, 1, 2), std::nullopt);
}

TEST(EarlyEndTest, ARoundThatFailsIsNotTriedAgain) {
  WorkDispatcher work = Dispatcher("sync:1");
  StageOne(&work, kAlice, 1);
  work.EndEarly("good enough");
  ASSERT_TRUE(work.RoundFailed(*work.StagedRound()));
  EXPECT_TRUE(work.Done());
  EXPECT_EQ(work.ledger().completed_steps(), 0);
  EXPECT_EQ(work.ToState().unfinished_size(), 1) << "its records are not trained on";
}

TEST(EarlyEndTest, ALostWorkersRoundIsDropped) {
  WorkDispatcher work = Dispatcher("sync:2");
  ASSERT_TRUE(work.Grant(kAlice, 1, 2).has_value());
  work.EndEarly("good enough");
  work.Forget(kAlice);
  work.Release(kAlice);
  EXPECT_TRUE(work.Done());
}

TEST(EarlyEndTest, AModeToComeDoesNotHinderIt) {
  WorkDispatcher work = Dispatcher("async");
  const auto lease = work.Grant(kAlice, 1, 2);
  work.SetMode(ConsistencyMode::Parse("sync:2").value());
  work.EndEarly("good enough");
  EXPECT_FALSE(work.Done());
  ASSERT_EQ(work.Complete(kAlice, lease->id, 1), absl::OkStatus());
  EXPECT_TRUE(work.Done());
  EXPECT_EQ(work.Grant(kAlice, 1, 2), std::nullopt);
}

TEST(EarlyEndTest, CommittedRoundsOfAPredecessorCount) {
  WorkDispatcher work = Dispatcher("sync:1");
  work.EndEarly("good enough");
  work.NoteCommittedRounds(2, /*same_mode=*/true);
  EXPECT_TRUE(work.Done());
  EXPECT_EQ(work.ledger().completed_steps(), 3);
}

TEST(SuccessionTest, CommittedRoundsAreDone) {
  WorkDispatcher work = Dispatcher("sync:2");
  work.NoteCommittedRounds(2, /*same_mode=*/true);
  EXPECT_EQ(work.ledger().completed_steps(), 3);
  EXPECT_THAT(work.Grant(kAlice, 1, 2)->tickets, ElementsAre(WorkTicket{3, 0, 60, 70}));
}

TEST(SuccessionTest, OfContestedRoundsTheRecordsAreNotKnown) {
  WorkDispatcher work = Dispatcher("sync:1/2");
  work.NoteCommittedRounds(2, /*same_mode=*/true);
  EXPECT_EQ(work.ledger().completed_steps(), 3);
  EXPECT_THAT(work.Grant(kAlice, 1, 2)->tickets, ElementsAre(WorkTicket{3, 0, 0, 10}));
}

TEST(SuccessionTest, NorOfRoundsBeforeTheModeWasChanged) {
  for (const char* mode : {"sync:4", "async"}) {
    WorkDispatcher work = Dispatcher(mode);
    work.NoteCommittedRounds(2, /*same_mode=*/false);
    EXPECT_EQ(work.ledger().completed_steps(), 3);
    EXPECT_THAT(work.Grant(kAlice, 1, 2)->tickets, ElementsAre(WorkTicket{3, 0, 0, 10}));
  }
}

TEST(SuccessionTest, RoundsThatTheLedgerKnowAreNotCountedTwice) {
  WorkDispatcher work = Dispatcher("async");
  DoOne(&work, kAlice);
  DoOne(&work, kAlice);
  work.NoteCommittedRounds(1, /*same_mode=*/true);
  EXPECT_EQ(work.ledger().completed_steps(), 2);
}

TEST(SuccessionTest, RoundsAfterLeasesAreCountedOnceTheseAreDone) {
  WorkDispatcher first = Dispatcher("async");
  const auto alices = first.Grant(kAlice, 2, 1);
  first.SetMode(ConsistencyMode::Parse("sync:1").value());
  v1::PersistedJobState persisted;
  first.ToPersisted(&persisted);
  WorkDispatcher second(WorkLedger::FromPersisted(persisted, {20, 1000, 10, 500}).value(),
                        ConsistencyMode::FromProto(persisted.job().mode()).value(), kFirstAttempt);
  EXPECT_TRUE(persisted.mode_pending());
  second.NoteCommittedRounds(4, /*same_mode=*/false);
  EXPECT_EQ(second.ledger().completed_steps(), 0);
  EXPECT_EQ(second.Grant(kBob, 1, 1), std::nullopt);
  std::vector<uint64_t> superseded;
  EXPECT_TRUE(second.Claim(kAlice, {alices->id, alices->tickets, 2, 0}, true, &superseded));
  EXPECT_EQ(second.Grant(kBob, 1, 1)->tickets[0].step, 5);
  EXPECT_THAT(superseded, IsEmpty());
}

TEST(SuccessionTest, ClaimsOfAStrangersLeaseAreForSuccessors) {
  WorkDispatcher work = Dispatcher("async");
  std::vector<uint64_t> superseded;
  const HeldLease lease = {500, {{0, 0, 0, 10}}, 0, 0};
  EXPECT_FALSE(work.Claim(kAlice, lease, /*may_adopt=*/false, &superseded));
  EXPECT_TRUE(work.Claim(kAlice, lease, /*may_adopt=*/true, &superseded));
}

TEST(SuccessionTest, ATicketOfARoundIsKeptByTheChiefThatGrantedIt) {
  WorkDispatcher work = Dispatcher("sync:1");
  const auto lease = work.Grant(kAlice, 1, 1);
  std::vector<uint64_t> superseded;
  HeldLease held = {lease->id, lease->tickets, 0, lease->attempt};
  EXPECT_TRUE(work.Claim(kAlice, held, true, &superseded));
  EXPECT_FALSE(work.Claim(kBob, held, true, &superseded));
  held.completed = 1;
  EXPECT_TRUE(work.Claim(kAlice, held, true, &superseded));
  EXPECT_TRUE(work.StagedRound().has_value());
  held.attempt += 1;
  EXPECT_FALSE(work.Claim(kAlice, held, true, &superseded));
  WorkDispatcher successor = Dispatcher("sync:1");
  EXPECT_FALSE(successor.Claim(kAlice, held, true, &superseded));
}

}  // namespace
}  // namespace keelson
