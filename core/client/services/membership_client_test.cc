#include "core/client/services/membership_client.h"

#include <deque>
#include <functional>

#include "gtest/gtest.h"
#include "testing/services/faulty_chief_service.h"

namespace keelson {
namespace {

constexpr uint64_t kIncarnation = 77;
constexpr uint64_t kSecret = 78;

class MembershipClientTest : public testing::Test {
 protected:
  MembershipClientTest() {
    chief_.Answer(&ChiefService::Register, [this](const auto&, auto* response) {
      response->mutable_state_versions()->set_current(41);
      if (answers_.empty()) return absl::OkStatus();
      const absl::Status answer = answers_.front()();
      answers_.pop_front();
      return answer;
    });
    chief_.Answer(&ChiefService::GetJobStatus, [](const auto&, auto* job) {
      job->mutable_lease()->set_seconds(10);
      return absl::OkStatus();
    });
  }

  static MembershipClient::Options MakeOptions() {
    MembershipClient::Options options;
    options.self = {Role::kEvaluator, 2};
    options.membership = {kIncarnation, kSecret};
    options.config_hash = 9;
    options.peer = "host:1";
    options.device = "cpu, 2 threads";
    options.step_bound = absl::Seconds(90);
    options.retry.first_pause = absl::Milliseconds(1);
    options.retry.give_up_after = absl::Minutes(1);
    options.held_pause = absl::Milliseconds(1);
    options.held_margin = absl::Seconds(5);
    options.replaced_patience = absl::Seconds(3);
    return options;
  }
  absl::Status Register() { return client_.Register().status(); }
  std::vector<v1::RegisterRequest> requests() const {
    return chief_.Requests(&ChiefService::Register);
  }

  void Answer(absl::Status status, absl::Duration after) {
    answers_.push_back([=, this] {
      clock_.Advance(after);
      return status;
    });
  }

  ManualClock clock_;
  StopSignal stop_;
  std::deque<std::function<absl::Status()>> answers_;  // to Register; then OK
  FaultyChiefService chief_;
  MembershipClient client_{MakeOptions(), &chief_, &clock_, &stop_};
};

TEST_F(MembershipClientTest, TellsWhoItIs) {
  ASSERT_TRUE(Register().ok());
  ASSERT_EQ(requests().size(), 1u);
  const v1::RegisterRequest request = requests()[0];
  EXPECT_EQ(request.header().task().role(), v1::ROLE_EVALUATOR);
  EXPECT_EQ(request.header().task().index(), 2u);
  EXPECT_EQ(request.header().incarnation(), kIncarnation);
  EXPECT_EQ(request.header().membership_secret(), kSecret);
  EXPECT_EQ(request.config_hash(), 9u);
  EXPECT_EQ(request.peer(), "host:1");
  EXPECT_EQ(request.device(), "cpu, 2 threads");
  EXPECT_EQ(request.step_bound().seconds(), 90);
  EXPECT_EQ(request.leases_size(), 0);
}

TEST_F(MembershipClientTest, ShowsTheEpochThatItWasTold) {
  ASSERT_TRUE(Register().ok());
  client_.NoteEpoch(5);
  ASSERT_TRUE(Register().ok());
  EXPECT_EQ(requests()[0].header().member_epoch(), 0u);
  EXPECT_EQ(requests()[1].header().member_epoch(), 5u);
}

TEST_F(MembershipClientTest, TellsWhatItHoldsAndReturnsWhatTheChiefSays) {
  v1::HeldLease lease;
  lease.set_lease_id(5);
  lease.set_completed_steps(2);
  const auto response = client_.Register({lease});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->state_versions().current(), 41u);
  ASSERT_EQ(requests()[0].leases_size(), 1);
  EXPECT_EQ(requests()[0].leases(0).lease_id(), 5u);
  EXPECT_EQ(requests()[0].leases(0).completed_steps(), 2);
}

TEST_F(MembershipClientTest, WaitsForAChiefThatIsAway) {
  Answer(absl::UnavailableError("not yet"), absl::Seconds(1));
  Answer(absl::DeadlineExceededError("slow"), absl::Seconds(1));
  EXPECT_TRUE(Register().ok());
  EXPECT_EQ(requests().size(), 3u);
}

TEST_F(MembershipClientTest, GivesUpOnAChiefThatStaysAway) {
  Answer(absl::UnavailableError("gone"), absl::Minutes(1));
  EXPECT_EQ(Register().code(), absl::StatusCode::kUnavailable);
}

TEST_F(MembershipClientTest, OutwaitsTheLeaseOfItsPredecessor) {
  Answer(absl::AlreadyExistsError("held"), absl::Seconds(7));
  Answer(absl::AlreadyExistsError("held"), absl::Seconds(7));
  EXPECT_TRUE(Register().ok());
}

TEST_F(MembershipClientTest, OutwaitsTheLeaseThatARestartedChiefGivesItsPredecessor) {
  Answer(absl::AlreadyExistsError("held"), absl::Seconds(1));
  Answer(absl::AlreadyExistsError("held"), absl::Seconds(8));
  Answer(absl::UnavailableError("connection refused"), absl::Seconds(1));
  Answer(absl::AlreadyExistsError("held"), absl::Seconds(1));
  Answer(absl::AlreadyExistsError("held"), absl::Seconds(10));
  EXPECT_TRUE(Register().ok());
  EXPECT_EQ(requests().size(), 6u);
}

// The process has stood still with that answer.
TEST_F(MembershipClientTest, AsksAgainAfterAnAnswerThatIsOld) {
  Answer(absl::AlreadyExistsError("held"), absl::Seconds(1));
  Answer(absl::AlreadyExistsError("held"), absl::Hours(1));
  EXPECT_TRUE(Register().ok());
  EXPECT_EQ(requests().size(), 3u);
}

TEST_F(MembershipClientTest, GivesWayToALiveProcess) {
  for (int i = 0; i < 5; ++i) Answer(absl::AlreadyExistsError("held by host:2"), absl::Seconds(5));
  const absl::Status status = Register();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(), "held by host:2");
  EXPECT_EQ(requests().size(), 5u);
}

TEST_F(MembershipClientTest, OneThatWasReplacedDoesNotWaitForTheLease) {
  ASSERT_TRUE(Register().ok());
  for (int i = 0; i < 5; ++i) Answer(absl::AlreadyExistsError("held by host:2"), absl::Seconds(1));
  const absl::Status status = Register();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(), "held by host:2");
  EXPECT_EQ(requests().size(), 6u);
  EXPECT_EQ(chief_.Count(&ChiefService::GetJobStatus), 0);
}

TEST_F(MembershipClientTest, AMemberIsNotTakenForReplacedByItsOwnPredecessor) {
  ASSERT_TRUE(Register().ok());
  Answer(absl::AlreadyExistsError("held by the one before"), absl::Seconds(1));
  EXPECT_TRUE(Register().ok());
}

TEST_F(MembershipClientTest, AMembershipThatIsOverIsFinal) {
  Answer(absl::AbortedError("its lease was lost"), absl::ZeroDuration());
  EXPECT_EQ(Register().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(MembershipClientTest, AnotherConfigurationIsFinal) {
  Answer(absl::FailedPreconditionError("hashes differ"), absl::ZeroDuration());
  EXPECT_EQ(Register().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(MembershipClientTest, StopsWhileTheTaskIsHeld) {
  answers_.push_back([this] {
    stop_.Raise();
    return absl::AlreadyExistsError("held");
  });
  EXPECT_EQ(Register().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace keelson
