#include "evaluator/chief_link.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "testing/services/faulty_chief_service.h"

namespace keelson {
namespace {

using absl::StatusCode;

constexpr uint64_t kFirstIncarnation = 5;
constexpr uint64_t kSecret = 0x5ec2e7;

// Keeps one member and its acknowledgements. Tests set its answers and wait for calls.
EvaluationRecord Scored(int64_t step, uint64_t snapshot_id = 0) {
  EvaluationRecord record;
  record.step = step;
  record.metrics = {{"loss", 0.5}};
  record.snapshot_id = snapshot_id;
  return record;
}

class LinkedChief : public FaultyChiefService {
 public:
  LinkedChief() {
    Answer(&ChiefService::Register, [this](const auto& request, auto*) {
      MutexLock lock(&mu_);
      if (retired_ == request.header().incarnation()) return absl::AbortedError("lost");
      member_ = request.header().incarnation();
      return absl::OkStatus();
    });
    Answer(&ChiefService::Heartbeat, [this](const auto& request, auto* response) {
      MutexLock lock(&mu_);
      if (member_ != request.header().incarnation()) return absl::AbortedError("not a member");
      response->set_phase(phase_);
      response->set_error("a reason");
      return absl::OkStatus();
    });
    Answer(&ChiefService::AcknowledgeEvaluation, [this](const auto& request, auto*) {
      MutexLock lock(&mu_);
      acknowledged_.push_back(request);
      changed_.NotifyAll();
      return absl::OkStatus();
    });
    Answer(&ChiefService::GetJobStatus, [](const auto&, auto* response) {
      response->set_snapshot_step(300);
      return absl::OkStatus();
    });
  }

  void SetEndRefusal(absl::Status refusal) {
    Answer(&ChiefService::EndTraining, [=](const auto&, auto*) { return refusal; });
  }
  void SetPhase(v1::JobPhase phase) {
    MutexLock lock(&mu_);
    phase_ = phase;
  }
  // As after a restart.
  void Forget() {
    MutexLock lock(&mu_);
    member_.reset();
    acknowledged_.clear();
  }

  // The membership is over.
  void Retire() {
    MutexLock lock(&mu_);
    retired_ = std::exchange(member_, std::nullopt);
    acknowledged_.clear();
  }

  // Waits for calls that begin after this one.
  template <typename Method>
  void AwaitMore(Method method, int count) {
    AwaitCount(method, Count(method) + count);
  }
  void AwaitHeartbeats(int count) { AwaitMore(&ChiefService::Heartbeat, count); }
  v1::AcknowledgeEvaluationRequest AwaitAcknowledgement(int64_t step) {
    MutexLock lock(&mu_);
    while (acknowledged_.empty() || acknowledged_.back().step() != step) changed_.Wait(&mu_);
    return acknowledged_.back();
  }
  // The newest of at least `count` requests.
  v1::EndTrainingRequest AwaitEnds(int count) {
    AwaitCount(&ChiefService::EndTraining, count);
    return Requests(&ChiefService::EndTraining).back();
  }
  int ends() const { return Count(&ChiefService::EndTraining); }
  int leaves() const { return Count(&ChiefService::Leave); }
  size_t acknowledgements() {
    MutexLock lock(&mu_);
    return acknowledged_.size();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  v1::JobPhase phase_ ABSL_GUARDED_BY(mu_) = v1::TRAINING;
  std::optional<uint64_t> member_ ABSL_GUARDED_BY(mu_);
  std::optional<uint64_t> retired_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::AcknowledgeEvaluationRequest> acknowledged_ ABSL_GUARDED_BY(mu_);
};

class ChiefLinkTest : public testing::Test {
 protected:
  std::unique_ptr<ChiefLink> Join() {
    ChiefLink::Options options;
    options.membership.self = {Role::kEvaluator, 0};
    options.new_membership = [this] { return MembershipId{next_incarnation_++, kSecret}; };
    options.membership.retry.first_pause = absl::Milliseconds(1);
    options.membership.retry.longest_pause = absl::Milliseconds(1);
    options.membership.held_pause = absl::Milliseconds(1);
    options.membership.held_margin = absl::ZeroDuration();
    options.heartbeat_interval = absl::Milliseconds(1);
    options.closing_interval = absl::Milliseconds(1);
    return std::make_unique<ChiefLink>(options, &chief_, &clock_);
  }
  // The second heartbeat begins when the first has been looked at.
  JobView ViewAfterHeartbeat(const ChiefLink& link) {
    chief_.AwaitHeartbeats(2);
    return link.View();
  }
  // The link ends by itself.
  absl::Status AwaitError(const ChiefLink& link) {
    while (link.View().error.ok()) std::this_thread::yield();
    return link.View().error;
  }

  ManualClock clock_;
  LinkedChief chief_;
  uint64_t next_incarnation_ = kFirstIncarnation;
};

TEST_F(ChiefLinkTest, HearsThePhaseAndLeavesOnce) {
  const auto link = Join();
  const JobView view = ViewAfterHeartbeat(*link);
  EXPECT_TRUE(view.reachable);
  EXPECT_EQ(view.phase, v1::TRAINING);
  EXPECT_FALSE(view.final_step.has_value());
  link->Leave();
  link->Leave();
  EXPECT_EQ(chief_.leaves(), 1);
}

TEST_F(ChiefLinkTest, LearnsTheFinalStep) {
  chief_.SetPhase(v1::EVALUATING);
  const auto link = Join();
  EXPECT_EQ(ViewAfterHeartbeat(*link).final_step, 300);
  // A chief that continues the job has no final step yet.
  chief_.SetPhase(v1::TRAINING);
  EXPECT_FALSE(ViewAfterHeartbeat(*link).final_step.has_value());
}

TEST_F(ChiefLinkTest, AChiefThatGivesUpIsFinal) {
  chief_.SetPhase(v1::FAILED);
  const auto link = Join();
  const absl::Status error = AwaitError(*link);
  EXPECT_EQ(error.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(error.message(), "the chief has given up: a reason");
}

TEST_F(ChiefLinkTest, RefusalsAreFinal) {
  for (const StatusCode code : {StatusCode::kFailedPrecondition, StatusCode::kAlreadyExists}) {
    chief_.FailNext(&ChiefService::Register, {absl::Status(code, "no")});
    EXPECT_EQ(AwaitError(*Join()).code(), code);
  }
}

TEST_F(ChiefLinkTest, AMembershipThatIsOverIsFollowedByANewOne) {
  const auto link = Join();
  link->Acknowledge(Scored(200));
  EXPECT_EQ(chief_.AwaitAcknowledgement(200).header().incarnation(), kFirstIncarnation);
  chief_.Retire();
  EXPECT_EQ(chief_.AwaitAcknowledgement(200).header().incarnation(), kFirstIncarnation + 1);
  EXPECT_TRUE(ViewAfterHeartbeat(*link).reachable);
  EXPECT_TRUE(link->View().error.ok());
}

TEST_F(ChiefLinkTest, AChiefThatIsAwayIsWaitedFor) {
  chief_.Sever();
  const auto link = Join();
  link->Acknowledge(Scored(100));
  chief_.AwaitMore(&ChiefService::Register, 3);
  EXPECT_FALSE(link->View().reachable);
  chief_.Restore();
  const v1::AcknowledgeEvaluationRequest acknowledged = chief_.AwaitAcknowledgement(100);
  EXPECT_EQ(acknowledged.header().incarnation(), kFirstIncarnation);
  EXPECT_EQ(acknowledged.metrics().at("loss"), 0.5);
  EXPECT_TRUE(ViewAfterHeartbeat(*link).reachable);
}

TEST_F(ChiefLinkTest, AcknowledgesWhenTheChiefIsBack) {
  const auto link = Join();
  chief_.AwaitHeartbeats(1);
  chief_.Sever();
  link->Acknowledge(Scored(100));
  chief_.Restore();
  chief_.AwaitAcknowledgement(100);
}

TEST_F(ChiefLinkTest, AcknowledgesAgainAfterTheChiefHasForgotten) {
  const auto link = Join();
  link->Acknowledge(Scored(200));
  chief_.AwaitAcknowledgement(200);
  chief_.Forget();
  chief_.AwaitAcknowledgement(200);
  EXPECT_TRUE(ViewAfterHeartbeat(*link).reachable);
}

TEST_F(ChiefLinkTest, AcknowledgesOnceAndNeverAnOlderStep) {
  const auto link = Join();
  link->Acknowledge(Scored(200));
  chief_.AwaitAcknowledgement(200);
  link->Acknowledge(Scored(100));
  chief_.AwaitHeartbeats(3);
  EXPECT_EQ(chief_.acknowledgements(), 1u);
}

TEST_F(ChiefLinkTest, AnEarlierStepIsAcknowledgedWhenTrainingHasGoneBack) {
  const auto link = Join();
  link->Acknowledge(Scored(200, 7));
  chief_.AwaitAcknowledgement(200);
  link->ForgetAfter(100);
  link->Acknowledge(Scored(150, 8));
  chief_.AwaitAcknowledgement(150);
  const auto requests = chief_.Requests(&ChiefService::AcknowledgeEvaluation);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].snapshot_id(), 7u);
  EXPECT_EQ(requests[1].snapshot_id(), 8u);
}

TEST_F(ChiefLinkTest, AsksOnceForTheEndOfTraining) {
  const auto link = Join();
  link->EndTraining("enough");
  link->EndTraining("another reason");
  const v1::EndTrainingRequest request = chief_.AwaitEnds(1);
  EXPECT_EQ(request.reason(), "enough");
  EXPECT_EQ(request.header().incarnation(), kFirstIncarnation);
  EXPECT_EQ(request.header().membership_secret(), kSecret);
  EXPECT_EQ(request.header().task().role(), v1::ROLE_EVALUATOR);
  chief_.AwaitHeartbeats(3);
  EXPECT_EQ(chief_.ends(), 1);
}

TEST_F(ChiefLinkTest, AsksWhenTheJobTrains) {
  chief_.SetPhase(v1::WAITING_FOR_SERVERS);
  const auto link = Join();
  link->EndTraining("enough");
  chief_.AwaitHeartbeats(3);
  EXPECT_EQ(chief_.ends(), 0);
  chief_.SetPhase(v1::TRAINING);
  chief_.AwaitEnds(1);
}

TEST_F(ChiefLinkTest, AsksAgainWhereItIsNotKnownToBeTaken) {
  const auto link = Join();
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kFailedPrecondition}) {
    chief_.SetEndRefusal(absl::Status(code, "not now"));
    link->EndTraining("enough");
    chief_.AwaitEnds(chief_.ends() + 2);
  }
  chief_.SetEndRefusal(absl::OkStatus());
  chief_.AwaitHeartbeats(3);
  // A chief that has forgotten its members may have forgotten that too.
  const int asked = chief_.ends();
  chief_.Forget();
  EXPECT_EQ(chief_.AwaitEnds(asked + 1).reason(), "enough");
}

TEST_F(ChiefLinkTest, AChiefThatRefusesIsNotAskedAgain) {
  chief_.SetEndRefusal(absl::UnimplementedError("an older chief"));
  const auto link = Join();
  link->EndTraining("enough");
  chief_.AwaitEnds(1);
  chief_.AwaitHeartbeats(3);
  EXPECT_EQ(chief_.ends(), 1);
  EXPECT_TRUE(link->View().error.ok());
}

TEST_F(ChiefLinkTest, EndsWhileTheChiefIsAway) {
  chief_.Sever();
  const auto link = Join();
  chief_.AwaitMore(&ChiefService::Register, 1);
  link->Leave();
  EXPECT_EQ(chief_.leaves(), 0);
  EXPECT_TRUE(link->View().error.ok());
}

}  // namespace
}  // namespace keelson
