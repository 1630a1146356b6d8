#include "worker/chief_session.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/fake_chief.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

absl::Status Away() { return absl::UnavailableError("connection refused"); }

class ChiefSessionTest : public testing::Test {
 protected:
  static ChiefSession::Options MakeOptions() {
    ChiefSession::Options options;
    options.self = {Role::kWorker, 3};
    options.incarnation = 7;
    options.config_hash = 0xabc;
    options.peer = "host:1";
    options.retry.first_pause = absl::Nanoseconds(1);
    options.retry.longest_pause = absl::Nanoseconds(1);
    options.heartbeat_interval = absl::Milliseconds(1);
    return options;
  }
  void Join() { ASSERT_EQ(session_.Join(), absl::OkStatus()); }
  Ticket NextTicket() {
    const auto next = session_.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_TRUE(next.ok() && next->has_value());
    return next.ok() && next->has_value() ? **next : Ticket();
  }
  void ExpectEnd() {
    const auto next = session_.Next();
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_FALSE(next->has_value());
  }
  void Finish(const Ticket& ticket) {
    FinishedStep step;
    step.ticket = ticket;
    progress_.Finish(step);
  }

  ManualClock clock_;
  StopSignal stop_;
  FakeChief chief_;
  Progress progress_;
  ChiefSession session_{MakeOptions(), &chief_, &progress_, &clock_, &stop_};
};

TEST_F(ChiefSessionTest, JoinTellsWhoThisIs) {
  Join();
  const auto registered = chief_.registered();
  ASSERT_THAT(registered, SizeIs(1));
  EXPECT_EQ(registered[0].header().task().index(), 3u);
  EXPECT_EQ(registered[0].header().incarnation(), 7u);
  EXPECT_EQ(registered[0].config_hash(), 0xabcu);
  EXPECT_EQ(registered[0].peer(), "host:1");
}

TEST_F(ChiefSessionTest, JoinWaitsForAChiefThatIsAway) {
  chief_.FailNext("Register", {Away(), Away()});
  Join();
  EXPECT_THAT(chief_.registered(), SizeIs(3));
}

TEST_F(ChiefSessionTest, JoinGivesUpOnAnotherConfiguration) {
  chief_.FailNext("Register", {absl::FailedPreconditionError("hash")});
  EXPECT_EQ(session_.Join().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(chief_.registered(), SizeIs(1));
}

TEST_F(ChiefSessionTest, JoinWaitsForTheLeaseOfItsPredecessor) {
  chief_.FailNext("Register", {absl::AlreadyExistsError("held")});
  Join();
  EXPECT_THAT(chief_.registered(), SizeIs(2));
}

TEST_F(ChiefSessionTest, JoinGivesUpOnATaskThatALiveProcessHolds) {
  class Holder : public FakeChief {
   public:
    explicit Holder(ManualClock* clock) : clock_(clock) {}
    absl::Status Register(const v1::RegisterRequest&, v1::RegisterResponse*) override {
      clock_->Advance(absl::Seconds(15));
      return absl::AlreadyExistsError("worker-3 is held by host:2");
    }

   private:
    ManualClock* const clock_;
  };
  Holder holder(&clock_);
  ChiefSession session(MakeOptions(), &holder, &progress_, &clock_, &stop_);
  const absl::Status status = session.Join();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("host:2"));
}

TEST_F(ChiefSessionTest, StopEndsTheWaitToJoin) {
  stop_.Raise();
  EXPECT_EQ(session_.Join().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefSessionTest, WaitForModelAsksUntilItIsThere) {
  v1::GetModelResponse model;
  model.add_ps_addresses("ps-0:1");
  chief_.SetModel(model);
  chief_.FailNext("GetModel", {absl::DeadlineExceededError("not yet"), Away()});
  Join();
  const auto located = session_.WaitForModel();
  ASSERT_TRUE(located.ok()) << located.status();
  EXPECT_EQ(located->ps_addresses(0), "ps-0:1");
}

TEST_F(ChiefSessionTest, WaitForModelJoinsAgainWhenLost) {
  Join();
  chief_.Lose();
  EXPECT_TRUE(session_.WaitForModel().ok());
  EXPECT_THAT(chief_.registered(), SizeIs(2));
}

TEST_F(ChiefSessionTest, WaitForModelEndsWhenTheJobHasFailed) {
  Join();
  chief_.FailNext("GetModel", {absl::FailedPreconditionError("ps-1 never came")});
  EXPECT_EQ(session_.WaitForModel().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ChiefSessionTest, TicketsComeInOrderUntilTrainingIsOver) {
  chief_.AddLease(50, 8, 2);
  chief_.AddLease(51, 10, 1);
  Join();
  const Ticket first = NextTicket();
  EXPECT_EQ(first.step, 8);
  EXPECT_EQ(first.lease_id, 50u);
  EXPECT_EQ(first.begin, 0);
  EXPECT_EQ(first.end, 4);
  EXPECT_TRUE(progress_.IsValid(first));
  EXPECT_EQ(NextTicket().step, 9);
  EXPECT_EQ(NextTicket().lease_id, 51u);
  chief_.SetPhase(v1::FINISHING);
  ExpectEnd();
}

TEST_F(ChiefSessionTest, AFinishedLeaseIsToldAtOnce) {
  chief_.AddLease(50, 0, 2);
  Join();
  Finish(NextTicket());
  Finish(NextTicket());
  chief_.AwaitCompleted(50, 2);
  ExpectEnd();
  EXPECT_EQ(chief_.sums().steps(), 2);
}

TEST_F(ChiefSessionTest, ARequestThatIsSentAgainKeepsItsNumber) {
  chief_.AddLease(50, 0, 1);
  chief_.AddLease(51, 1, 1);
  Join();
  chief_.FailNext("AcquireWork", {Away(), absl::DeadlineExceededError("late")});
  NextTicket();
  NextTicket();
  EXPECT_THAT(chief_.sequences(), ElementsAre(1, 1, 1, 2));
}

TEST_F(ChiefSessionTest, ProgressOfAFailedHeartbeatIsToldLater) {
  chief_.AddLease(50, 0, 2);
  Join();
  Finish(NextTicket());
  chief_.FailNext("Heartbeat", {Away(), Away()});
  Finish(NextTicket());
  chief_.AwaitCompleted(50, 2);
  EXPECT_EQ(chief_.sums().steps(), 2);
}

TEST_F(ChiefSessionTest, ALostWorkerDropsItsTicketsAndJoinsAgain) {
  chief_.AddLease(50, 0, 1);
  Join();
  const Ticket old = NextTicket();
  chief_.Lose();
  chief_.AddLease(60, 0, 1);
  const Ticket fresh = NextTicket();
  EXPECT_EQ(fresh.lease_id, 60u);
  EXPECT_FALSE(progress_.IsValid(old));
  EXPECT_TRUE(progress_.IsValid(fresh));
  EXPECT_THAT(chief_.registered(), SizeIs(2));
}

TEST_F(ChiefSessionTest, AnAbortedHeartbeatDropsTheTickets) {
  chief_.AddLease(50, 0, 1);
  Join();
  const Ticket old = NextTicket();
  chief_.Lose();
  while (progress_.IsValid(old)) chief_.AwaitHeartbeats(1);
  // It is Next that joins again.
  EXPECT_THAT(chief_.registered(), SizeIs(1));
}

TEST_F(ChiefSessionTest, ALateAbortedHeartbeatDoesNotDropTheNewTickets) {
  chief_.AddLease(50, 0, 1);
  Join();
  NextTicket();
  // A heartbeat is refused, but before it is told so the worker has joined and has new work.
  StopSignal refused;
  StopSignal joined;
  chief_.Lose([&] {
    refused.Raise();
    joined.Wait();
  });
  chief_.AddLease(60, 0, 1);
  refused.Wait();
  const Ticket fresh = NextTicket();
  joined.Raise();
  chief_.AwaitHeartbeats(2);
  EXPECT_TRUE(progress_.IsValid(fresh));
  EXPECT_EQ(fresh.lease_id, 60u);
}

TEST_F(ChiefSessionTest, NextTellsWhyTheChiefHasGivenUp) {
  Join();
  chief_.SetPhase(v1::FAILED, "disk full");
  const auto next = session_.Next();
  EXPECT_EQ(next.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(next.status().message(), "the chief has given up: disk full");
}

TEST_F(ChiefSessionTest, AHeartbeatThatTellsOfFailureEndsTheWork) {
  chief_.AddLease(50, 0, 100);
  Join();
  NextTicket();
  chief_.SetPhase(v1::FAILED, "disk full");
  chief_.AwaitHeartbeats(2);
  const auto next = session_.Next();
  EXPECT_EQ(next.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(next.status().message()), HasSubstr("disk full"));
}

TEST_F(ChiefSessionTest, StopEndsNext) {
  Join();
  stop_.Raise();
  EXPECT_EQ(session_.Next().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefSessionTest, NextGivesUpOnAChiefThatStaysAway) {
  class Absent : public FakeChief {
   public:
    explicit Absent(ManualClock* clock) : clock_(clock) {}
    absl::Status AcquireWork(const v1::AcquireWorkRequest&, v1::AcquireWorkResponse*) override {
      clock_->Advance(absl::Minutes(10));
      return Away();
    }

   private:
    ManualClock* const clock_;
  };
  Absent chief(&clock_);
  ChiefSession session(MakeOptions(), &chief, &progress_, &clock_, &stop_);
  ASSERT_EQ(session.Join(), absl::OkStatus());
  const absl::Status status = session.Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("waiting for the chief for 10m"));
  session.Leave();
}

TEST_F(ChiefSessionTest, LeaveTellsTheLastProgressOnce) {
  chief_.AddLease(50, 0, 2);
  Join();
  Finish(NextTicket());
  session_.Leave();
  session_.Leave();
  EXPECT_EQ(chief_.left(), 1);
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 1)));
  EXPECT_EQ(chief_.sums().steps(), 1);
}

TEST_F(ChiefSessionTest, LeaveWithoutAChiefIsNoError) {
  Join();
  chief_.FailNext("Leave", {Away()});
  session_.Leave();
  EXPECT_EQ(chief_.left(), 1);
}

}  // namespace
}  // namespace keelson
