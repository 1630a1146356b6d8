#include "worker/chief_session.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int64_t kLongPollSeconds = 1;

MembershipClient::Options MembershipOptions(const ChiefSession::Options& options) {
  MembershipClient::Options out;
  out.self = options.self;
  out.incarnation = options.incarnation;
  out.config_hash = options.config_hash;
  out.peer = options.peer;
  out.retry = options.retry;
  return out;
}

absl::Status GaveUp(absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("the chief has given up: ", reason));
}

}  // namespace

ChiefSession::ChiefSession(const Options& options, ChiefService* chief, Progress* progress,
                           const Clock* clock, const StopSignal* stop)
    : options_(options),
      chief_(chief),
      progress_(progress),
      clock_(clock),
      stop_(stop),
      membership_(MembershipOptions(options), chief, clock, stop) {}

ChiefSession::~ChiefSession() { Leave(); }

absl::Status ChiefSession::Join() {
  RETURN_IF_ERROR(Register());
  heartbeats_ = std::thread([this] { HeartbeatLoop(); });
  return absl::OkStatus();
}

absl::Status ChiefSession::Register() {
  RETURN_IF_ERROR(membership_.Register());
  MutexLock lock(&mu_);
  ++registrations_;
  return absl::OkStatus();
}

absl::Status ChiefSession::Rejoin() {
  LogWarning("the chief has lost this worker; joining again");
  progress_->DropLeases();
  return Register();
}

absl::StatusOr<v1::GetModelResponse> ChiefSession::WaitForModel() {
  v1::GetModelRequest request;
  *request.mutable_header() = membership_.Header();
  request.mutable_max_wait()->set_seconds(kLongPollSeconds);
  while (true) {
    v1::GetModelResponse response;
    const absl::Status status =
        CallWithRetries(options_.retry, "waiting for the parameter servers", clock_, stop_,
                        [&] { return chief_->GetModel(request, &response); });
    if (status.ok()) return response;
    if (status.code() != absl::StatusCode::kAborted) return status;
    RETURN_IF_ERROR(Rejoin());
  }
}

absl::StatusOr<std::optional<Ticket>> ChiefSession::Next() {
  RETURN_IF_ERROR(JobState());
  if (tickets_.empty()) return AcquireLease();
  const Ticket ticket = tickets_.front();
  tickets_.pop_front();
  return ticket;
}

absl::StatusOr<std::optional<Ticket>> ChiefSession::AcquireLease() {
  while (true) {
    v1::AcquireWorkResponse response;
    RETURN_IF_ERROR(Acquire(&response));
    if (response.lease_id() != 0) {
      for (const v1::StepTicket& ticket : response.tickets()) {
        tickets_.push_back({ticket.step(), ticket.records().epoch(), ticket.records().begin(),
                            ticket.records().end(), response.lease_id()});
      }
      progress_->AddLease(response.lease_id(), response.tickets_size());
      return Next();
    }
    if (response.phase() == v1::FAILED) return ChiefGaveUp();
    if (response.phase() > v1::TRAINING) return std::nullopt;
  }
}

absl::Status ChiefSession::Acquire(v1::AcquireWorkResponse* response) {
  v1::AcquireWorkRequest request;
  *request.mutable_header() = membership_.Header();
  request.mutable_max_wait()->set_seconds(kLongPollSeconds);
  while (true) {
    *request.mutable_progress() = progress_->Take();
    request.set_sequence(++sequence_);
    const absl::Status status = CallWithRetries(options_.retry, "waiting for the chief", clock_,
                                                stop_, [&]() -> absl::Status {
                                                  RETURN_IF_ERROR(JobState());
                                                  return chief_->AcquireWork(request, response);
                                                });
    if (status.ok()) return status;
    progress_->Restore(request.progress());
    if (status.code() != absl::StatusCode::kAborted) return status;
    RETURN_IF_ERROR(Rejoin());
  }
}

absl::Status ChiefSession::ChiefGaveUp() {
  v1::GetJobStatusRequest request;
  v1::JobStatus job;
  chief_->GetJobStatus(request, &job).IgnoreError();
  return GaveUp(job.error());
}

absl::Status ChiefSession::JobState() const {
  MutexLock lock(&mu_);
  return failure_.has_value() ? GaveUp(*failure_) : absl::OkStatus();
}

void ChiefSession::HeartbeatLoop() {
  while (!left_.raised()) {
    SendHeartbeat();
    progress_->WaitForUrgent(options_.heartbeat_interval);
  }
}

void ChiefSession::SendHeartbeat() {
  int64_t registrations = 0;
  {
    MutexLock lock(&mu_);
    registrations = registrations_;
  }
  v1::HeartbeatRequest request;
  *request.mutable_header() = membership_.Header();
  *request.mutable_progress() = progress_->Take();
  v1::HeartbeatResponse response;
  const absl::Status status = chief_->Heartbeat(request, &response);
  if (status.ok()) {
    MutexLock lock(&mu_);
    if (response.phase() == v1::FAILED) failure_ = response.error();
    return;
  }
  progress_->Restore(request.progress());
  if (status.code() == absl::StatusCode::kAborted) {
    MutexLock lock(&mu_);
    // Next joins again when it comes by; until then no work is done for tickets of others. Where it
    // has joined already, the leases are of the new membership.
    if (registrations_ == registrations) progress_->DropLeases();
  }
  // A chief that does not answer is not called in a hurry.
  left_.WaitFor(absl::Milliseconds(200));
}

void ChiefSession::Leave() {
  if (!heartbeats_.joinable()) return;
  left_.Raise();
  progress_->Wake();
  heartbeats_.join();
  v1::LeaveRequest request;
  *request.mutable_header() = membership_.Header();
  *request.mutable_progress() = progress_->Take();
  v1::LeaveResponse response;
  const absl::Status status = chief_->Leave(request, &response);
  if (!status.ok()) LogInfo("leaving without the chief: ", status.message());
}

}  // namespace keelson
