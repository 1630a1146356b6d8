#include "chief/coordination/coordinator_state.h"

#include <optional>
#include <vector>

#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes until when somebody would have waited.
class NotingClock : public ManualClock {
 public:
  void WaitUntil(Mutex* /*mutex*/, CondVar* /*changed*/, absl::Duration until) const override {
    waited_until_ = until;
  }
  absl::Duration waited_until() const { return waited_until_; }

 private:
  mutable absl::Duration waited_until_;
};

// One thread, which could do without the lock.
class CoordinatorStateTest : public testing::Test {
 protected:
  void SetUp() override { state_.mu.Lock(); }
  void TearDown() override { state_.mu.Unlock(); }

  static CoordinatorState::Options ShortLease() {
    CoordinatorState::Options options;
    options.lease = kLease;
    return options;
  }
  void Train(const char* mode = "async") {
    Training::Options options;
    options.mode = ConsistencyMode::Parse(mode).value();
    state_.training.emplace(options, WorkLedger({10, 1000, 10}), /*first_attempt=*/1);
  }
  void Join(Task task, uint64_t incarnation) {
    ASSERT_EQ(state_.membership.Register(task, TestId(incarnation), "host:1"), absl::OkStatus());
    state_.stalls.Join(incarnation);
  }
  WorkLease Grant(uint64_t incarnation) {
    const auto lease = state_.training->work().Grant(incarnation, 1, /*alive_workers=*/2);
    EXPECT_TRUE(lease.has_value());
    return lease.value_or(WorkLease());
  }
  // A request that is never answered; whether it is tried since.
  void Park() {
    state_.parked.Park(ParkedRequests::Kind::kWork, 99, clock_.Monotonic(),
                       absl::InfiniteDuration(), [this](bool) {
                         ++tries_;
                         return nullptr;
                       });
  }
  bool Tried() {
    const int before = tries_;
    state_.parked.TryDue(clock_.Monotonic());
    return tries_ > before;
  }

  NotingClock clock_;
  CoordinatorState state_{ShortLease(), &clock_};
  int tries_ = 0;
};

TEST_F(CoordinatorStateTest, AReportRenewsTheLeaseAndCounts) {
  EXPECT_EQ(state_.AcceptReport(kWorker0, TestId(1), {}).code(), absl::StatusCode::kAborted);
  Join(kWorker0, 1);
  EXPECT_EQ(state_.AcceptReport(kWorker0, TestId(1), Completed(1, 1, 1)), absl::OkStatus())
      << "nothing to count before training";
  Train();
  const WorkLease lease = Grant(1);
  EXPECT_EQ(state_.AcceptReport(kWorker0, TestId(1), Completed(lease.id, 2)).code(),
            absl::StatusCode::kInvalidArgument);
  clock_.Advance(kLease - absl::Seconds(1));
  EXPECT_EQ(state_.AcceptReport(kWorker0, TestId(1), Completed(lease.id, 1)), absl::OkStatus());
  EXPECT_EQ(state_.training->ledger().completed_steps(), 1);
  EXPECT_EQ(state_.membership.Members()[0].last_heard, clock_.Monotonic());
}

TEST_F(CoordinatorStateTest, AStepThatIsReportedShowsThatTheWorkerDoesNotStand) {
  Train();
  Join(kWorker0, 1);
  const WorkLease lease = Grant(1);
  EXPECT_THAT(state_.stalls.Look({1}), IsEmpty());
  clock_.Advance(StallWatch::kFirstStep);
  ASSERT_EQ(state_.AcceptReport(kWorker0, TestId(1), Completed(lease.id, 1)), absl::OkStatus());
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(state_.stalls.Look({1}), IsEmpty());
}

TEST_F(CoordinatorStateTest, AReportHasRequestsTriedIfItMayFreeWork) {
  Train("sync:2");
  Join(kWorker0, 1);
  Join(kWorker1, 2);
  const WorkLease lease = Grant(1);
  const WorkLease other = Grant(2);
  Park();
  ASSERT_EQ(state_.AcceptReport(kWorker0, TestId(1), {}), absl::OkStatus());
  EXPECT_FALSE(Tried()) << "a mere heartbeat";
  ASSERT_EQ(state_.AcceptReport(kWorker0, TestId(1), Completed(lease.id, 1)), absl::OkStatus());
  EXPECT_FALSE(Tried()) << "the round is the same one";
  WorkerReport refused;
  refused.refused = {{other.id, 0, other.attempt}};
  ASSERT_EQ(state_.AcceptReport(kWorker1, TestId(2), refused), absl::OkStatus());
  EXPECT_TRUE(Tried()) << "the round begins again";
}

TEST_F(CoordinatorStateTest, AnEndIsNoticedOnceByAllParts) {
  Train();
  Join(kWorker0, 1);
  Join(kWorker1, 2);
  ASSERT_TRUE(state_.requests.Note(1, 5));
  Park();
  const uint64_t version = state_.training->ledger().version();
  state_.membership.Lose(1);
  state_.NoticeEnds();
  state_.NoticeEnds();
  EXPECT_THAT(state_.newly_ended, ElementsAre(1u));
  EXPECT_FALSE(state_.requests.Came(1, 5));
  EXPECT_GT(state_.training->ledger().version(), version);
  EXPECT_TRUE(Tried());
}

TEST_F(CoordinatorStateTest, LeasesThatAreNotClaimedGoToOthers) {
  EXPECT_THAT(state_.ClaimLeases(kWorker0, 1, {{{7, {}, 0, 0}}}), IsEmpty()) << "no ledger";
  Train();
  Join(kWorker0, 1);
  const WorkLease kept = Grant(1);
  EXPECT_THAT(state_.ClaimLeases(kWorker0, 1, {{{kept.id, kept.tickets, 0, 0}}}),
              ElementsAre(kept.id));
  EXPECT_EQ(state_.training->ledger().Outstanding(1), 1);
}

TEST_F(CoordinatorStateTest, WhatASuccessorMustKnowIsUrgentOnceThereIsState) {
  state_.RequestPersistence();
  EXPECT_FALSE(state_.versions.urgent());
  Train();
  const uint64_t version = state_.training->ledger().version();
  state_.RequestPersistence();
  EXPECT_GT(state_.training->ledger().version(), version);
  EXPECT_TRUE(state_.versions.urgent());
  state_.versions.NoteStored(state_.training->ledger().version());
  EXPECT_FALSE(state_.versions.urgent());
}

TEST_F(CoordinatorStateTest, TrainingIsNotOverWhileWorkersAreExpectedBack) {
  EXPECT_FALSE(state_.Trained());
  Train();
  state_.training->work().EndEarly("good enough");
  EXPECT_TRUE(state_.Trained());
  Member away;
  away.task = kWorker0;
  away.incarnation = 1;
  state_.membership.Expect(away);
  EXPECT_TRUE(state_.WorkersAway());
  EXPECT_FALSE(state_.Trained());
}

TEST_F(CoordinatorStateTest, AMemberThatWaitsRenewsItsLeaseInTime) {
  state_.WaitUntil(absl::InfiniteDuration());
  EXPECT_EQ(clock_.waited_until(), absl::InfiniteDuration());
  state_.WaitAsMember(absl::InfiniteDuration());
  EXPECT_LT(clock_.waited_until(), state_.options.takeover_after);
  const absl::Duration soon = absl::Milliseconds(1);
  state_.WaitAsMember(soon);
  EXPECT_EQ(clock_.waited_until(), soon);
}

}  // namespace
}  // namespace keelson
