#include "worker/fake_chief.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/cluster/figures.h"

namespace keelson {

FakeChief::FakeChief() {
  Answer(&ChiefService::Register, std::bind_front(&FakeChief::DoRegister, this));
  Answer(&ChiefService::GetModel, std::bind_front(&FakeChief::DoGetModel, this));
  Answer(&ChiefService::Heartbeat, std::bind_front(&FakeChief::DoHeartbeat, this));
  Answer(&ChiefService::AcquireWork, std::bind_front(&FakeChief::DoAcquireWork, this));
  Answer(&ChiefService::Admit, std::bind_front(&FakeChief::DoAdmit, this));
  Answer(&ChiefService::Leave, [this](const auto& request, auto*) { return DoLeave(request); });
  Answer(&ChiefService::GetJobStatus, [this](const auto&, auto* response) {
    MutexLock lock(&mu_);
    response->set_phase(phase_);
    response->set_error(error_);
    return absl::OkStatus();
  });
}

absl::Status FakeChief::DoRegister(const v1::RegisterRequest& request,
                                   v1::RegisterResponse* response) {
  // Who waits for the registration goes on when the lock is free, and then it is answered.
  MutexLock lock(&mu_);
  ++registrations_;
  changed_.NotifyAll();
  const uint64_t incarnation = request.header().incarnation();
  if (!holder_.empty()) return absl::AlreadyExistsError("the task is held by " + holder_);
  if (retired_.contains(incarnation)) return absl::AbortedError("its lease was lost");
  member_ = incarnation;
  for (const v1::HeldLease& lease : request.leases()) {
    if (!disowned_.contains(lease.lease_id())) response->add_kept_leases(lease.lease_id());
  }
  *response->mutable_state_versions() = state_versions_;
  return absl::OkStatus();
}

void FakeChief::MoveServers(uint64_t version, std::vector<std::string> addresses) {
  MutexLock lock(&mu_);
  servers_version_ = version;
  moved_to_ = std::move(addresses);
}

template <typename Request, typename Response>
void FakeChief::TellServers(const Request& request, Response* response) const {
  response->set_servers_version(servers_version_);
  if (request.servers_version() == servers_version_) return;
  for (const std::string& address : moved_to_) response->add_ps_addresses(address);
}

absl::Status FakeChief::DoGetModel(const v1::GetModelRequest& request,
                                   v1::GetModelResponse* response) {
  MutexLock lock(&mu_);
  const absl::Status status = CheckMember(request.header());
  if (status.ok()) *response = model_;
  return status;
}

absl::Status FakeChief::DoHeartbeat(const v1::HeartbeatRequest& request,
                                    v1::HeartbeatResponse* response) {
  std::function<void()> hook;
  absl::Status status;
  {
    MutexLock lock(&mu_);
    ++heartbeats_;
    status = CheckMember(request.header());
    if (status.ok()) Accept(request.progress());
    response->set_phase(phase_);
    response->set_error(error_);
    *response->mutable_state_versions() = state_versions_;
    TellServers(request, response);
    std::swap(hook, heartbeat_hook_);
    changed_.NotifyAll();
  }
  if (hook != nullptr) hook();
  return status;
}

absl::Status FakeChief::DoAcquireWork(const v1::AcquireWorkRequest& request,
                                      v1::AcquireWorkResponse* response) {
  std::function<void()> hook;
  {
    MutexLock lock(&mu_);
    RETURN_IF_ERROR(CheckMember(request.header()));
    Accept(request.progress());
    response->Clear();
    Grant(response);
    TellServers(request, response);
    changed_.NotifyAll();
    *response->mutable_state_versions() = state_versions_;
    if (response->lease_id() != 0) std::swap(hook, grant_hook_);
  }
  if (hook != nullptr) hook();
  return absl::OkStatus();
}

absl::Status FakeChief::DoAdmit(const v1::AdmitRequest& request, v1::AdmitResponse* response) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(CheckMember(request.header()));
  response->set_admitted(!unwanted_.contains(request.lease_id()));
  if (!response->admitted()) --granted_;
  return absl::OkStatus();
}

absl::Status FakeChief::DoLeave(const v1::LeaveRequest& request) {
  MutexLock lock(&mu_);
  const absl::Status status = CheckMember(request.header());
  if (status.ok()) Accept(request.progress());
  return status;
}

v1::AcquireWorkResponse FakeChief::MakeLease(uint64_t id, int64_t step, int tickets) {
  v1::AcquireWorkResponse lease;
  lease.set_lease_id(id);
  lease.set_phase(v1::TRAINING);
  for (int64_t i = step; i < step + tickets; ++i) {
    v1::StepTicket* ticket = lease.add_tickets();
    ticket->set_step(i);
    ticket->mutable_records()->set_begin(4 * i % 32);
    ticket->mutable_records()->set_end(4 * i % 32 + 4);
  }
  return lease;
}

void FakeChief::AddLease(const v1::AcquireWorkResponse& lease) {
  MutexLock lock(&mu_);
  leases_.push_back(lease);
  granted_ += lease.tickets_size();
}

void FakeChief::AddSynchronousLease(uint64_t id, int64_t step, uint32_t attempt, bool contested) {
  v1::AcquireWorkResponse lease = MakeLease(id, step, 1);
  lease.mutable_tickets(0)->set_attempt(attempt);
  lease.mutable_tickets(0)->set_contested(contested);
  AddLease(lease);
}

void FakeChief::DoNotAdmit(uint64_t lease_id) {
  MutexLock lock(&mu_);
  unwanted_.insert(lease_id);
}

void FakeChief::WriteOff(int tickets) {
  MutexLock lock(&mu_);
  granted_ -= tickets;
}

void FakeChief::Withhold(bool withheld) {
  MutexLock lock(&mu_);
  withheld_ = withheld;
}

void FakeChief::SetModel(const v1::GetModelResponse& model) {
  MutexLock lock(&mu_);
  model_ = model;
}

void FakeChief::SetStateVersions(uint64_t current, uint64_t stored) {
  MutexLock lock(&mu_);
  state_versions_.set_current(current);
  state_versions_.set_stored(stored);
}

void FakeChief::Lose() {
  MutexLock lock(&mu_);
  if (member_.has_value()) retired_.insert(*member_);
  member_.reset();
  granted_ = 0;
  completed_ = 0;
  completed_by_lease_.clear();
}

void FakeChief::Replace(const std::string& peer) {
  Lose();
  MutexLock lock(&mu_);
  holder_ = peer;
}

void FakeChief::OnNextGrant(std::function<void()> granted) {
  MutexLock lock(&mu_);
  grant_hook_ = std::move(granted);
}

void FakeChief::AwaitHeartbeats(int more) {
  MutexLock lock(&mu_);
  const int count = heartbeats_ + more;
  while (heartbeats_ < count) changed_.Wait(&mu_);
}

void FakeChief::AwaitGrants(int count) {
  MutexLock lock(&mu_);
  while (granted_ < count) changed_.Wait(&mu_);
}

void FakeChief::AwaitRegistrations(int count) {
  MutexLock lock(&mu_);
  while (registrations_ < count) changed_.Wait(&mu_);
}

void FakeChief::AwaitCompleted(uint64_t lease_id, int64_t steps) {
  MutexLock lock(&mu_);
  while (completed_by_lease_[lease_id] < steps) changed_.Wait(&mu_);
}

void FakeChief::AwaitNonFiniteLoss() {
  MutexLock lock(&mu_);
  while (sums_.non_finite_losses() == 0) changed_.Wait(&mu_);
}

void FakeChief::AwaitRefused(size_t count) {
  MutexLock lock(&mu_);
  while (refused_.size() < count) changed_.Wait(&mu_);
}

void FakeChief::SetPhase(v1::JobPhase phase, const std::string& error) {
  MutexLock lock(&mu_);
  phase_ = phase;
  error_ = error;
}

void FakeChief::Forget(std::set<uint64_t> disowned, std::function<void()> refused) {
  MutexLock lock(&mu_);
  member_.reset();
  disowned_ = std::move(disowned);
  heartbeat_hook_ = std::move(refused);
}

std::map<uint64_t, int64_t> FakeChief::completed() const {
  MutexLock lock(&mu_);
  return completed_by_lease_;
}

v1::WorkerFigures FakeChief::sums() const {
  MutexLock lock(&mu_);
  return sums_;
}

std::vector<v1::RefusedPush> FakeChief::refused() const {
  MutexLock lock(&mu_);
  return refused_;
}

std::vector<uint64_t> FakeChief::sequences() const {
  std::vector<uint64_t> sequences;
  for (const v1::AcquireWorkRequest& request : Requests(&ChiefService::AcquireWork)) {
    sequences.push_back(request.sequence());
  }
  return sequences;
}

absl::Status FakeChief::CheckMember(const v1::RequestHeader& header) const {
  if (member_ == header.incarnation()) return absl::OkStatus();
  return absl::AbortedError("not a member");
}

void FakeChief::Grant(v1::AcquireWorkResponse* response) {
  response->set_phase(phase_);
  if (phase_ != v1::TRAINING) return;
  if (!leases_.empty()) {
    *response = leases_.front();
    leases_.pop_front();
  } else if (completed_ >= granted_ && !withheld_) {
    response->set_phase(v1::FINISHING);
  }
}

void FakeChief::Accept(const v1::WorkerProgress& progress) {
  for (const v1::LeaseProgress& lease : progress.leases()) {
    int64_t& completed = completed_by_lease_[lease.lease_id()];
    if (lease.completed_steps() <= completed) continue;
    completed_ += lease.completed_steps() - completed;
    completed = lease.completed_steps();
  }
  refused_.insert(refused_.end(), progress.refused().begin(), progress.refused().end());
  AddFigures(progress.figures(), &sums_);
  changed_.NotifyAll();
}

}  // namespace keelson
