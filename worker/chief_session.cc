// Three threads call the chief, and any of them may be the first to learn that it was restarted
// (ABORTED). One of them registers; the others wait and then repeat their calls. Registrations are
// counted, so that an answer that was requested before the newest one is recognised: it may be that
// of the former chief, whose leases the current one may not know (Accept).
#include "worker/chief_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int64_t kLongPollSeconds = 1;
// How long a worker computes a synchronous step before it asks for more work without having done
// it: a chief that has lost others may have some.
constexpr absl::Duration kLongestRoundWait = absl::Seconds(1);
// A chief that asks for longer pauses would lose its workers.
constexpr absl::Duration kLongestHeartbeat = absl::Seconds(5);
constexpr char kWaiting[] = "waiting for the chief";

MembershipClient::Options MembershipOptions(const ChiefSession::Options& options) {
  MembershipClient::Options out;
  out.self = options.self;
  out.membership = options.membership;
  out.config_hash = options.config_hash;
  out.peer = options.peer;
  out.device = options.device;
  out.step_bound = options.step_bound;
  out.prepare = options.prepare;
  out.retry = options.retry;
  return out;
}

absl::Status GaveUp(absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("the chief has given up: ", reason));
}

std::vector<Ticket> TicketsOf(const v1::AcquireWorkResponse& lease) {
  std::vector<Ticket> tickets;
  for (const v1::StepTicket& ticket : lease.tickets()) {
    tickets.push_back({ticket.step(), ticket.records().epoch(), ticket.records().begin(),
                       ticket.records().end(), lease.lease_id(), ticket.attempt(),
                       ticket.contested(), ticket.last_of_step(), ticket.follows_round(),
                       lease.fresh_values() || ticket.attempt() != 0, ticket.order()});
  }
  return tickets;
}

}  // namespace

ChiefSession::ChiefSession(const Options& options, ChiefService* chief, Progress* progress,
                           const Clock* clock, StopSignal* stop)
    : options_(options),
      chief_(chief),
      progress_(progress),
      clock_(clock),
      ended_(stop),
      membership_(MembershipOptions(options), chief, clock, &ended_) {}

ChiefSession::~ChiefSession() { Leave(); }

absl::Status ChiefSession::Join() {
  RETURN_IF_ERROR(Register(registrations()));
  heartbeats_ = Thread([this] { HeartbeatLoop(); });
  return absl::OkStatus();
}

absl::Status ChiefSession::Confirm() { return Register(registrations()); }

absl::Status ChiefSession::Register(int64_t registrations) {
  {
    MutexLock lock(&mu_);
    AwaitRegistration();
    RETURN_IF_ERROR(status_);
    if (registrations_ != registrations) return absl::OkStatus();
    registering_ = true;
  }
  const std::vector<v1::HeldLease> held = progress_->Held();
  const absl::StatusOr<v1::RegisterResponse> answer = membership_.Register(held);
  MutexLock lock(&mu_);
  registering_ = false;
  registered_.NotifyAll();
  if (answer.ok()) {
    NoteRegistered(held, *answer);
    return absl::OkStatus();
  }
  const bool goes_on =
      IsTransient(answer.status()) || answer.status().code() == absl::StatusCode::kCancelled;
  return goes_on ? answer.status() : End(answer.status());
}

void ChiefSession::NoteRegistered(const std::vector<v1::HeldLease>& held,
                                  const v1::RegisterResponse& answer) {
  progress_->Keep(held, answer);
  servers_.Forget();
  const std::string absence = TakeAbsence();
  if (registrations_++ == 0) return;
  LogInfo("the chief is there again", absence, ": registered with ", held.size(),
          " leases, of which it keeps ", answer.kept_leases_size());
}

void ChiefSession::AwaitRegistration() {
  while (registering_) registered_.Wait(&mu_);
}

int64_t ChiefSession::registrations() const {
  MutexLock lock(&mu_);
  return registrations_;
}

absl::Status ChiefSession::status() const {
  MutexLock lock(&mu_);
  return status_;
}

absl::Status ChiefSession::End(const absl::Status& error) {
  if (status_.ok()) status_ = error;
  ended_.Raise();
  return status_;
}

absl::Status ChiefSession::Call(absl::string_view what, absl::FunctionRef<absl::Status()> call) {
  while (true) {
    const int64_t registrations = this->registrations();
    const absl::Status status = CallWithRetries(options_.retry, what, clock_, &ended_, call);
    if (status.code() == absl::StatusCode::kAborted) {
      RETURN_IF_ERROR(Register(registrations));
      continue;
    }
    if (status.code() == absl::StatusCode::kCancelled) RETURN_IF_ERROR(this->status());
    return status;
  }
}

absl::StatusOr<v1::GetModelResponse> ChiefSession::WaitForModel() {
  v1::GetModelRequest request;
  *request.mutable_header() = membership_.Header();
  request.mutable_max_wait()->set_seconds(kLongPollSeconds);
  v1::GetModelResponse response;
  int64_t registrations = 0;
  RETURN_IF_ERROR(Call("waiting for those who hold the model", [&] {
    registrations = this->registrations();
    return chief_->GetModel(request, &response);
  }));
  membership_.NoteEpoch(response.member_epoch());
  MutexLock lock(&mu_);
  AwaitRegistration();
  // The version may be that of a chief that is gone.
  servers_.Begin(registrations_ == registrations ? response.servers_version() : 0);
  return response;
}

absl::StatusOr<std::optional<Ticket>> ChiefSession::Next() {
  RETURN_IF_ERROR(status());
  const std::optional<Ticket> ticket = Ready();
  return ticket.has_value() ? ticket : AcquireLease();
}

std::optional<Ticket> ChiefSession::Ready() {
  while (!tickets_.empty()) {
    const Ticket ticket = tickets_.front();
    tickets_.pop_front();
    if (progress_->IsValid(ticket)) return ticket;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Ticket>> ChiefSession::AcquireLease() {
  while (true) {
    if (in_round_) AwaitRoundDone();
    RETURN_IF_ERROR(status());
    v1::AcquireWorkResponse response;
    RETURN_IF_ERROR(Acquire(&response));
    if (response.lease_id() != 0) {
      for (const Ticket& ticket : TicketsOf(response)) tickets_.push_back(ticket);
      in_round_ = !tickets_.empty() && tickets_.back().attempt != 0;
      // None of the tickets of the lease before is left, and what they name is read.
      if (options_.stream != nullptr) {
        options_.stream->SetFiles(std::vector<v1::StreamFile>(response.stream_files().begin(),
                                                              response.stream_files().end()));
      }
      return Next();
    }
    if (response.phase() == v1::FAILED) return ChiefGaveUp();
    if (response.phase() > v1::TRAINING) return std::nullopt;
  }
}

void ChiefSession::AwaitRoundDone() {
  const StopCallback wake(&ended_, [this] { progress_->Wake(); });
  progress_->WaitUntilDone(kLongestRoundWait);
}

absl::Status ChiefSession::Acquire(v1::AcquireWorkResponse* response) {
  v1::AcquireWorkRequest request;
  *request.mutable_header() = membership_.Header();
  request.mutable_max_wait()->set_seconds(kLongPollSeconds);
  request.set_sequence(++sequence_);
  *request.mutable_progress() = progress_->Take();
  // The sequence number stays the same across a registration: if the answer came from the current
  // chief, it grants the same lease again.
  const absl::Status status = Call(kWaiting, [&]() -> absl::Status {
    const int64_t registrations = this->registrations();
    request.set_servers_version(servers_.version());
    RETURN_IF_ERROR(chief_->AcquireWork(request, response));
    if (Accept(registrations, request.progress(), *response)) return absl::OkStatus();
    return absl::UnavailableError("the chief was restarted");
  });
  if (!status.ok()) progress_->Restore(request.progress());
  return status;
}

bool ChiefSession::Accept(int64_t registrations, const v1::WorkerProgress& report,
                          const v1::AcquireWorkResponse& response) {
  MutexLock lock(&mu_);
  AwaitRegistration();
  if (registrations_ != registrations) return false;
  progress_->Acknowledge(report, response.state_versions());
  servers_.Note(response.servers_version(), response.ps_addresses());
  if (response.lease_id() != 0) progress_->AddLease(response.lease_id(), TicketsOf(response));
  return true;
}

absl::StatusOr<bool> ChiefSession::Admit(const Ticket& ticket) {
  v1::AdmitRequest request;
  *request.mutable_header() = membership_.Header();
  request.set_lease_id(ticket.lease_id);
  request.set_step(ticket.step);
  request.set_attempt(ticket.attempt);
  v1::AdmitResponse response;
  RETURN_IF_ERROR(Call(kWaiting, [&] {
    response.Clear();
    return progress_->IsValid(ticket) ? chief_->Admit(request, &response) : absl::OkStatus();
  }));
  return response.admitted() && progress_->IsValid(ticket);
}

absl::Status ChiefSession::EndTraining(const std::string& reason) {
  v1::EndTrainingRequest request;
  *request.mutable_header() = membership_.Header();
  request.set_reason(reason);
  v1::EndTrainingResponse response;
  return Call(kWaiting, [&] { return chief_->EndTraining(request, &response); });
}

absl::StatusOr<int64_t> ChiefSession::SaveSnapshot() {
  v1::SaveSnapshotRequest request;
  *request.mutable_header() = membership_.Header();
  v1::SaveSnapshotResponse response;
  absl::Status refusal;
  RETURN_IF_ERROR(Call(kWaiting, [&] {
    absl::Duration next_after;
    RETURN_IF_ERROR(SendHeartbeat(&next_after));  // What is done is to be in the snapshot.
    refusal = chief_->SaveSnapshot(request, &response);
    // A chief that has just answered, and could not write: that is told.
    return absl::IsAborted(refusal) || absl::IsCancelled(refusal) ? refusal : absl::OkStatus();
  }));
  RETURN_IF_ERROR(refusal);
  return response.step();
}

absl::Status ChiefSession::ChiefGaveUp() {
  v1::JobStatus job;
  chief_->GetJobStatus(v1::GetJobStatusRequest(), &job).IgnoreError();
  MutexLock lock(&mu_);
  return End(GaveUp(job.error()));
}

void ChiefSession::HeartbeatLoop() {
  absl::Duration pause = options_.retry.first_pause;
  while (!ended_.raised()) {
    absl::Duration next_after;
    if (SendHeartbeat(&next_after).ok()) {
      pause = options_.retry.first_pause;
      progress_->WaitForUrgent(std::max(options_.heartbeat_interval, next_after));
    } else {
      ended_.WaitFor(pause);
      pause = NextPause(options_.retry, pause);
    }
  }
}

absl::Status ChiefSession::SendHeartbeat(absl::Duration* next_after) {
  const int64_t registrations = this->registrations();
  v1::HeartbeatRequest request;
  *request.mutable_header() = membership_.Header();
  *request.mutable_progress() = progress_->Take();
  request.set_servers_version(servers_.version());
  v1::HeartbeatResponse response;
  const absl::Status status = chief_->Heartbeat(request, &response);
  if (!status.ok()) {
    progress_->Restore(request.progress());
    if (status.code() == absl::StatusCode::kAborted) return Register(registrations);
    NoteUnreachable(status);
    return status;
  }
  *next_after = std::min(absl::Seconds(response.next_after().seconds()) +
                             absl::Nanoseconds(response.next_after().nanos()),
                         kLongestHeartbeat);
  MutexLock lock(&mu_);
  AwaitRegistration();
  if (registrations_ != registrations) {
    // The report is sent again: the answer may be that of a chief that is gone.
    v1::WorkerProgress leases;
    *leases.mutable_leases() = request.progress().leases();
    progress_->Restore(leases);
    return status;
  }
  progress_->Acknowledge(request.progress(), response.state_versions());
  servers_.Note(response.servers_version(), response.ps_addresses());
  const std::string absence = TakeAbsence();
  if (!absence.empty()) LogInfo("the chief is there again", absence);
  if (response.phase() == v1::FAILED) return End(GaveUp(response.error()));
  return status;
}

void ChiefSession::NoteUnreachable(const absl::Status& status) {
  MutexLock lock(&mu_);
  if (unreachable_since_.has_value() || ended_.raised()) return;
  unreachable_since_ = clock_->Monotonic();
  LogWarning("the chief does not answer: ", status.message());
}

std::string ChiefSession::TakeAbsence() {
  const std::optional<absl::Duration> since = std::exchange(unreachable_since_, std::nullopt);
  if (!since.has_value()) return "";
  const absl::Duration absence = clock_->Monotonic() - *since;
  return absl::StrCat(" after ", absl::FormatDuration(absl::Trunc(absence, absl::Milliseconds(1))));
}

void ChiefSession::Leave() {
  if (!heartbeats_.Joinable()) return;
  ended_.Raise();
  progress_->Wake();
  heartbeats_.Join();
  const absl::Status over = status();
  if (absl::IsAborted(over) || absl::IsAlreadyExists(over)) return;
  v1::LeaveRequest request;
  *request.mutable_header() = membership_.Header();
  *request.mutable_progress() = progress_->Take();
  v1::LeaveResponse response;
  const absl::Status left = chief_->Leave(request, &response);
  if (!left.ok()) LogInfo("leaving without the chief: ", left.message());
}

}  // namespace keelson
