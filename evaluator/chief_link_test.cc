#include "evaluator/chief_link.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/client/services/chief_service_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using absl::StatusCode;

constexpr uint64_t kFirstIncarnation = 5;

// Keeps one member and its acknowledgements. Tests set its answers and wait for calls.
class LinkedChief : public FakeChiefService {
 public:
  absl::Status Register(const v1::RegisterRequest& request, v1::RegisterResponse*) override {
    MutexLock lock(&mu_);
    ++registrations_;
    changed_.NotifyAll();
    if (away_) return absl::UnavailableError("away");
    if (retired_ == request.header().incarnation()) return absl::AbortedError("lost");
    if (refusal_.ok()) member_ = request.header().incarnation();
    return refusal_;
  }
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override {
    MutexLock lock(&mu_);
    ++heartbeats_;
    changed_.NotifyAll();
    if (away_) return absl::UnavailableError("away");
    if (member_ != request.header().incarnation()) return absl::AbortedError("not a member");
    response->set_phase(phase_);
    response->set_error("a reason");
    return absl::OkStatus();
  }
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse*) override {
    MutexLock lock(&mu_);
    if (away_) return absl::UnavailableError("away");
    acknowledged_.push_back(request);
    changed_.NotifyAll();
    return absl::OkStatus();
  }
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse*) override {
    MutexLock lock(&mu_);
    ends_.push_back(request);
    changed_.NotifyAll();
    return end_refusal_;
  }
  absl::Status GetJobStatus(const v1::GetJobStatusRequest&, v1::JobStatus* response) override {
    response->set_snapshot_step(300);
    return absl::OkStatus();
  }
  absl::Status Leave(const v1::LeaveRequest&, v1::LeaveResponse*) override {
    MutexLock lock(&mu_);
    ++leaves_;
    return absl::OkStatus();
  }

  void SetAway(bool away) {
    MutexLock lock(&mu_);
    away_ = away;
  }
  void SetRefusal(absl::Status refusal) {
    MutexLock lock(&mu_);
    refusal_ = refusal;
  }
  void SetEndRefusal(absl::Status refusal) {
    MutexLock lock(&mu_);
    end_refusal_ = refusal;
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
  void AwaitHeartbeats(int count) {
    MutexLock lock(&mu_);
    const int until = heartbeats_ + count;
    while (heartbeats_ < until) changed_.Wait(&mu_);
  }
  void AwaitRegistrations(int count) {
    MutexLock lock(&mu_);
    const int until = registrations_ + count;
    while (registrations_ < until) changed_.Wait(&mu_);
  }
  v1::AcknowledgeEvaluationRequest AwaitAcknowledgement(int64_t step) {
    MutexLock lock(&mu_);
    while (acknowledged_.empty() || acknowledged_.back().step() != step) changed_.Wait(&mu_);
    return acknowledged_.back();
  }
  // The newest of at least `count` requests.
  v1::EndTrainingRequest AwaitEnds(size_t count) {
    MutexLock lock(&mu_);
    while (ends_.size() < count) changed_.Wait(&mu_);
    return ends_.back();
  }
  size_t ends() {
    MutexLock lock(&mu_);
    return ends_.size();
  }
  int leaves() {
    MutexLock lock(&mu_);
    return leaves_;
  }
  size_t acknowledgements() {
    MutexLock lock(&mu_);
    return acknowledged_.size();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool away_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
  absl::Status end_refusal_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::EndTrainingRequest> ends_ ABSL_GUARDED_BY(mu_);
  v1::JobPhase phase_ ABSL_GUARDED_BY(mu_) = v1::TRAINING;
  std::optional<uint64_t> member_ ABSL_GUARDED_BY(mu_);
  std::optional<uint64_t> retired_ ABSL_GUARDED_BY(mu_);
  int registrations_ ABSL_GUARDED_BY(mu_) = 0;
  int heartbeats_ ABSL_GUARDED_BY(mu_) = 0;
  int leaves_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<v1::AcknowledgeEvaluationRequest> acknowledged_ ABSL_GUARDED_BY(mu_);
};

class ChiefLinkTest : public testing::Test {
 protected:
  std::unique_ptr<ChiefLink> Join() {
    ChiefLink::Options options;
    options.membership.self = {Role::kEvaluator, 0};
    options.new_incarnation = [this] { return next_incarnation_++; };
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
    chief_.SetRefusal(absl::Status(code, "no"));
    EXPECT_EQ(AwaitError(*Join()).code(), code);
  }
}

TEST_F(ChiefLinkTest, AMembershipThatIsOverIsFollowedByANewOne) {
  const auto link = Join();
  link->Acknowledge(200, {});
  EXPECT_EQ(chief_.AwaitAcknowledgement(200).header().incarnation(), kFirstIncarnation);
  chief_.Retire();
  EXPECT_EQ(chief_.AwaitAcknowledgement(200).header().incarnation(), kFirstIncarnation + 1);
  EXPECT_TRUE(ViewAfterHeartbeat(*link).reachable);
  EXPECT_TRUE(link->View().error.ok());
}

TEST_F(ChiefLinkTest, AChiefThatIsAwayIsWaitedFor) {
  chief_.SetAway(true);
  const auto link = Join();
  link->Acknowledge(100, {{"loss", 0.5}});
  chief_.AwaitRegistrations(3);
  EXPECT_FALSE(link->View().reachable);
  chief_.SetAway(false);
  const v1::AcknowledgeEvaluationRequest acknowledged = chief_.AwaitAcknowledgement(100);
  EXPECT_EQ(acknowledged.header().incarnation(), kFirstIncarnation);
  EXPECT_EQ(acknowledged.metrics().at("loss"), 0.5);
  EXPECT_TRUE(ViewAfterHeartbeat(*link).reachable);
}

TEST_F(ChiefLinkTest, AcknowledgesWhenTheChiefIsBack) {
  const auto link = Join();
  chief_.AwaitHeartbeats(1);
  chief_.SetAway(true);
  link->Acknowledge(100, {});
  chief_.SetAway(false);
  chief_.AwaitAcknowledgement(100);
}

TEST_F(ChiefLinkTest, AcknowledgesAgainAfterTheChiefHasForgotten) {
  const auto link = Join();
  link->Acknowledge(200, {});
  chief_.AwaitAcknowledgement(200);
  chief_.Forget();
  chief_.AwaitAcknowledgement(200);
  EXPECT_TRUE(ViewAfterHeartbeat(*link).reachable);
}

TEST_F(ChiefLinkTest, AcknowledgesOnceAndNeverAnOlderStep) {
  const auto link = Join();
  link->Acknowledge(200, {});
  chief_.AwaitAcknowledgement(200);
  link->Acknowledge(100, {});
  chief_.AwaitHeartbeats(3);
  EXPECT_EQ(chief_.acknowledgements(), 1u);
}

TEST_F(ChiefLinkTest, AsksOnceForTheEndOfTraining) {
  const auto link = Join();
  link->EndTraining("enough");
  link->EndTraining("another reason");
  const v1::EndTrainingRequest request = chief_.AwaitEnds(1);
  EXPECT_EQ(request.reason(), "enough");
  EXPECT_EQ(request.header().incarnation(), kFirstIncarnation);
  EXPECT_EQ(request.header().task().role(), v1::ROLE_EVALUATOR);
  chief_.AwaitHeartbeats(3);
  EXPECT_EQ(chief_.ends(), 1u);
}

TEST_F(ChiefLinkTest, AsksWhenTheJobTrains) {
  chief_.SetPhase(v1::WAITING_FOR_SERVERS);
  const auto link = Join();
  link->EndTraining("enough");
  chief_.AwaitHeartbeats(3);
  EXPECT_EQ(chief_.ends(), 0u);
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
  const size_t asked = chief_.ends();
  chief_.Forget();
  EXPECT_EQ(chief_.AwaitEnds(asked + 1).reason(), "enough");
}

TEST_F(ChiefLinkTest, AChiefThatRefusesIsNotAskedAgain) {
  chief_.SetEndRefusal(absl::UnimplementedError("an older chief"));
  const auto link = Join();
  link->EndTraining("enough");
  chief_.AwaitEnds(1);
  chief_.AwaitHeartbeats(3);
  EXPECT_EQ(chief_.ends(), 1u);
  EXPECT_TRUE(link->View().error.ok());
}

TEST_F(ChiefLinkTest, EndsWhileTheChiefIsAway) {
  chief_.SetAway(true);
  const auto link = Join();
  chief_.AwaitRegistrations(1);
  link->Leave();
  EXPECT_EQ(chief_.leaves(), 0);
  EXPECT_TRUE(link->View().error.ok());
}

}  // namespace
}  // namespace keelson
