#include "evaluator/chief_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int64_t kNothing = -1;

absl::Status GivenUp(absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("the chief has given up: ", reason));
}

}  // namespace

ChiefLink::ChiefLink(const Options& options, ChiefService* chief, const Clock* clock)
    : options_(options), chief_(chief), clock_(clock) {
  newest_.set_step(kNothing);
  BeginMembership();
  thread_ = Thread([this] { Loop(); });
}

ChiefLink::~ChiefLink() { Leave(); }

JobView ChiefLink::View() const {
  MutexLock lock(&mu_);
  return view_;
}

void ChiefLink::Acknowledge(const EvaluationRecord& record) {
  MutexLock lock(&mu_);
  if (record.step < newest_.step()) return;
  newest_.set_step(record.step);
  newest_.set_snapshot_id(record.snapshot_id);
  newest_.clear_metrics();
  newest_.mutable_metrics()->insert(record.metrics.begin(), record.metrics.end());
  unsent_ = true;
  urgent_ = true;
  changed_.NotifyAll();
}

void ChiefLink::ForgetAfter(int64_t step) {
  MutexLock lock(&mu_);
  if (newest_.step() <= step) return;
  newest_.set_step(kNothing);
  unsent_ = false;
}

void ChiefLink::EndTraining(const std::string& reason) {
  MutexLock lock(&mu_);
  if (!end_reason_.empty()) return;
  end_reason_ = reason;
  end_unsent_ = true;
  urgent_ = true;
  changed_.NotifyAll();
}

void ChiefLink::Leave() {
  if (!thread_.Joinable()) return;
  left_.Raise();
  {
    MutexLock lock(&mu_);
    urgent_ = true;
    changed_.NotifyAll();
  }
  thread_.Join();
  if (!View().reachable) return;
  v1::LeaveRequest request;
  *request.mutable_header() = membership_->Header();
  v1::LeaveResponse response;
  const absl::Status status = chief_->Leave(request, &response);
  if (!status.ok()) LogInfo("leaving without the chief: ", status.message());
}

void ChiefLink::BeginMembership() {
  MembershipClient::Options options = options_.membership;
  options.membership = options_.new_membership();
  options.retry.give_up_after = absl::InfiniteDuration();
  membership_ = std::make_unique<MembershipClient>(std::move(options), chief_, clock_, &left_);
}

void ChiefLink::Loop() {
  while (!left_.raised()) {
    const absl::Status status = Talk();
    if (left_.raised()) return;
    if (status.code() == absl::StatusCode::kAborted) {
      registered_ = false;
      SetUnreachable();
    } else if (IsTransient(status)) {
      SetUnreachable();
    } else if (!status.ok()) {
      return End(status);
    }
    Pause();
  }
}

absl::Status ChiefLink::Talk() {
  if (!registered_) RETURN_IF_ERROR(Register());
  RETURN_IF_ERROR(SendAcknowledgement());
  RETURN_IF_ERROR(SendHeartbeat());
  return SendEndOfTraining();
}

absl::Status ChiefLink::Register() {
  const absl::Status status = membership_->Register().status();
  if (status.code() == absl::StatusCode::kAborted) {
    LogWarning("this membership is over, registering again: ", status.message());
    BeginMembership();
  }
  RETURN_IF_ERROR(status);
  registered_ = true;
  if (registrations_++ > 0) LogInfo("the chief is there again: registered");
  MutexLock lock(&mu_);
  view_.reachable = true;
  unsent_ = newest_.step() != kNothing;
  end_unsent_ = !end_reason_.empty();
  return absl::OkStatus();
}

absl::Status ChiefLink::SendAcknowledgement() {
  v1::AcknowledgeEvaluationRequest request;
  {
    MutexLock lock(&mu_);
    if (!unsent_) return absl::OkStatus();
    unsent_ = false;
    request = newest_;
  }
  *request.mutable_header() = membership_->Header();
  v1::AcknowledgeEvaluationResponse response;
  const absl::Status status = chief_->AcknowledgeEvaluation(request, &response);
  if (!status.ok()) {
    MutexLock lock(&mu_);
    unsent_ = newest_.step() != kNothing;
  }
  return status;
}

absl::Status ChiefLink::SendHeartbeat() {
  v1::HeartbeatRequest request;
  *request.mutable_header() = membership_->Header();
  v1::HeartbeatResponse response;
  RETURN_IF_ERROR(chief_->Heartbeat(request, &response));
  if (response.phase() == v1::FAILED) return GivenUp(response.error());
  return TakePhase(response.phase());
}

absl::Status ChiefLink::SendEndOfTraining() {
  v1::EndTrainingRequest request;
  {
    MutexLock lock(&mu_);
    if (!end_unsent_ || view_.phase != v1::TRAINING) return absl::OkStatus();
    request.set_reason(end_reason_);
  }
  *request.mutable_header() = membership_->Header();
  v1::EndTrainingResponse response;
  const absl::Status status = chief_->EndTraining(request, &response);
  // Training may just have ended; the next heartbeat tells whether it has.
  if (absl::IsFailedPrecondition(status)) return absl::OkStatus();
  if (IsTransient(status) || absl::IsAborted(status)) return status;
  if (!status.ok()) LogWarning("the chief does not end training: ", status.ToString());
  MutexLock lock(&mu_);
  end_unsent_ = false;
  return absl::OkStatus();
}

absl::Status ChiefLink::TakePhase(v1::JobPhase phase) {
  std::optional<int64_t> final_step;
  if (phase >= v1::EVALUATING) final_step = View().final_step;
  if (phase >= v1::EVALUATING && !final_step.has_value()) {
    v1::JobStatus job;
    RETURN_IF_ERROR(chief_->GetJobStatus(v1::GetJobStatusRequest(), &job));
    final_step = job.snapshot_step();
  }
  MutexLock lock(&mu_);
  view_.reachable = true;
  view_.phase = phase;
  view_.final_step = final_step;
  return absl::OkStatus();
}

void ChiefLink::SetUnreachable() {
  MutexLock lock(&mu_);
  view_.reachable = false;
}

void ChiefLink::End(const absl::Status& error) {
  MutexLock lock(&mu_);
  view_.error = error;
}

void ChiefLink::Pause() {
  MutexLock lock(&mu_);
  const bool closing = view_.reachable && view_.phase >= v1::FINISHING;
  if (!urgent_) {
    changed_.WaitFor(&mu_, closing ? options_.closing_interval : options_.heartbeat_interval);
  }
  urgent_ = false;
}

}  // namespace keelson
