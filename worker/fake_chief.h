// A chief for the worker's tests: it hands out the leases that the test has prepared, records the
// reports it gets, and fails on request.
#ifndef KEELSON_WORKER_FAKE_CHIEF_H_
#define KEELSON_WORKER_FAKE_CHIEF_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/client/services/chief_service.h"
#include "core/cluster/figures.h"

namespace keelson {

// Thread-safe. AcquireWork does not wait: without a lease it returns the phase.
class FakeChief : public ChiefService {
 public:
  absl::Status Register(const v1::RegisterRequest& request,
                        v1::RegisterResponse* response) override {
    MutexLock lock(&mu_);
    registered_.push_back(request);
    changed_.NotifyAll();
    RETURN_IF_ERROR(NextError("Register"));
    const uint64_t incarnation = request.header().incarnation();
    if (!holder_.empty()) return absl::AlreadyExistsError("the task is held by " + holder_);
    if (retired_.contains(incarnation)) return absl::AbortedError("its lease was lost");
    member_ = incarnation;
    for (const v1::HeldLease& lease : request.leases()) {
      if (!disowned_.contains(lease.lease_id())) response->add_kept_leases(lease.lease_id());
    }
    *response->mutable_books() = books_;
    return absl::OkStatus();
  }
  absl::Status GetModel(const v1::GetModelRequest& request,
                        v1::GetModelResponse* response) override {
    MutexLock lock(&mu_);
    const absl::Status status = MemberError("GetModel", request.header());
    if (status.ok()) *response = model_;
    return status;
  }
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override {
    std::function<void()> hook;
    absl::Status status;
    {
      MutexLock lock(&mu_);
      ++heartbeats_;
      status = MemberError("Heartbeat", request.header());
      if (status.ok()) Accept(request.progress());
      response->set_phase(phase_);
      response->set_error(error_);
      *response->mutable_books() = books_;
      std::swap(hook, heartbeat_hook_);
      changed_.NotifyAll();
    }
    if (hook != nullptr) hook();
    return status;
  }
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override {
    std::function<void()> hook;
    {
      MutexLock lock(&mu_);
      sequences_.push_back(request.sequence());
      RETURN_IF_ERROR(MemberError("AcquireWork", request.header()));
      Accept(request.progress());
      response->Clear();
      Grant(response);
      *response->mutable_books() = books_;
      if (response->lease_id() != 0) std::swap(hook, grant_hook_);
    }
    if (hook != nullptr) hook();
    return absl::OkStatus();
  }
  absl::Status Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) override {
    MutexLock lock(&mu_);
    RETURN_IF_ERROR(MemberError("Admit", request.header()));
    asked_.push_back(request);
    response->set_admitted(!unwanted_.contains(request.lease_id()));
    if (!response->admitted()) --granted_;
    return absl::OkStatus();
  }
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse*) override {
    MutexLock lock(&mu_);
    ++left_;
    const absl::Status status = MemberError("Leave", request.header());
    if (status.ok()) Accept(request.progress());
    return status;
  }
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest&,
                                     v1::AcknowledgeEvaluationResponse*) override {
    return absl::UnimplementedError("a worker does not call it");
  }
  absl::Status GetJobStatus(const v1::GetJobStatusRequest&, v1::JobStatus* response) override {
    MutexLock lock(&mu_);
    response->set_phase(phase_);
    response->set_error(error_);
    return absl::OkStatus();
  }

  // ---- Faults and leases that a test arranges.

  // A lease of `tickets` steps from `step`, 4 records each.
  static v1::AcquireWorkResponse MakeLease(uint64_t id, int64_t step, int tickets) {
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
  // The job is over when all leases are done.
  void AddLease(const v1::AcquireWorkResponse& lease) {
    MutexLock lock(&mu_);
    leases_.push_back(lease);
    granted_ += lease.tickets_size();
  }
  void AddLease(uint64_t id, int64_t step, int tickets) { AddLease(MakeLease(id, step, tickets)); }
  // Adds a lease for an attempt at a step; a `contested` one takes fewer gradients than it has
  // tickets.
  void AddSynchronousLease(uint64_t id, int64_t step, uint32_t attempt, bool contested) {
    v1::AcquireWorkResponse lease = MakeLease(id, step, 1);
    lease.mutable_tickets(0)->set_attempt(attempt);
    lease.mutable_tickets(0)->set_contested(contested);
    AddLease(lease);
  }
  // The lease's gradient will not be admitted.
  void DoNotAdmit(uint64_t lease_id) {
    MutexLock lock(&mu_);
    unwanted_.insert(lease_id);
  }
  // This many tickets will not be completed.
  void WriteOff(int tickets) {
    MutexLock lock(&mu_);
    granted_ -= tickets;
  }
  // While set, the job is not over when all leases are done: more will come.
  void Withhold(bool withheld) {
    MutexLock lock(&mu_);
    withheld_ = withheld;
  }
  void SetModel(const v1::GetModelResponse& model) {
    MutexLock lock(&mu_);
    model_ = model;
  }
  void SetPhase(v1::JobPhase phase, const std::string& error = "") {
    MutexLock lock(&mu_);
    phase_ = phase;
    error_ = error;
  }
  // The next calls of `method` fail with these statuses, one after the other, and do nothing.
  void FailNext(const std::string& method, const std::vector<absl::Status>& errors) {
    MutexLock lock(&mu_);
    std::deque<absl::Status>& queue = errors_[method];
    queue.insert(queue.end(), errors.begin(), errors.end());
  }
  // Sets the BookVersions of all answers.
  void SetBooks(uint64_t current, uint64_t stored) {
    MutexLock lock(&mu_);
    books_.set_current(current);
    books_.set_stored(stored);
  }
  // A chief that was restarted: calls are ABORTED until the worker registers again. It keeps the
  // leases but for `disowned`. `refused` is called once, after the next heartbeat was answered and
  // before the worker gets the answer.
  void Forget(std::set<uint64_t> disowned = {}, std::function<void()> refused = nullptr) {
    MutexLock lock(&mu_);
    member_.reset();
    disowned_ = std::move(disowned);
    heartbeat_hook_ = std::move(refused);
  }
  // The membership is over; leases that the worker holds need not be completed.
  void Lose() {
    MutexLock lock(&mu_);
    if (member_.has_value()) retired_.insert(*member_);
    member_.reset();
    granted_ = 0;
    completed_ = 0;
    completed_by_lease_.clear();
  }
  // Another process, `peer`, has the task.
  void Replace(const std::string& peer) {
    Lose();
    MutexLock lock(&mu_);
    holder_ = peer;
  }
  // `granted` is called once, after a lease was granted and before the worker gets it.
  void OnNextGrant(std::function<void()> granted) {
    MutexLock lock(&mu_);
    grant_hook_ = std::move(granted);
  }

  // ---- Queries of a test.

  void AwaitHeartbeats(int more) {
    MutexLock lock(&mu_);
    const int count = heartbeats_ + more;
    while (heartbeats_ < count) changed_.Wait(&mu_);
  }
  void AwaitRegistrations(size_t count) {
    MutexLock lock(&mu_);
    while (registered_.size() < count) changed_.Wait(&mu_);
  }
  void AwaitCompleted(uint64_t lease_id, int64_t steps) {
    MutexLock lock(&mu_);
    while (completed_by_lease_[lease_id] < steps) changed_.Wait(&mu_);
  }
  void AwaitNonFiniteLoss() {
    MutexLock lock(&mu_);
    while (sums_.non_finite_losses() == 0) changed_.Wait(&mu_);
  }
  std::vector<v1::RegisterRequest> registered() const {
    MutexLock lock(&mu_);
    return registered_;
  }
  std::map<uint64_t, int64_t> completed() const {
    MutexLock lock(&mu_);
    return completed_by_lease_;
  }
  v1::WorkerFigures sums() const {
    MutexLock lock(&mu_);
    return sums_;
  }
  std::vector<uint64_t> sequences() const {
    MutexLock lock(&mu_);
    return sequences_;
  }
  std::vector<v1::AdmitRequest> asked() const {
    MutexLock lock(&mu_);
    return asked_;
  }
  int left() const {
    MutexLock lock(&mu_);
    return left_;
  }

 private:
  absl::Status NextError(const std::string& method) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::deque<absl::Status>& queue = errors_[method];
    if (queue.empty()) return absl::OkStatus();
    absl::Status status = queue.front();
    queue.pop_front();
    return status;
  }
  absl::Status MemberError(const std::string& method, const v1::RequestHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    absl::Status status = NextError(method);
    if (!status.ok() || member_ == header.incarnation()) return status;
    return absl::AbortedError("not a member");
  }
  void Grant(v1::AcquireWorkResponse* response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    response->set_phase(phase_);
    if (phase_ != v1::TRAINING) return;
    if (!leases_.empty()) {
      *response = leases_.front();
      leases_.pop_front();
    } else if (completed_ >= granted_ && !withheld_) {
      response->set_phase(v1::FINISHING);
    }
  }
  void Accept(const v1::WorkerProgress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const v1::LeaseProgress& lease : progress.leases()) {
      int64_t& completed = completed_by_lease_[lease.lease_id()];
      if (lease.completed_steps() <= completed) continue;
      completed_ += lease.completed_steps() - completed;
      completed = lease.completed_steps();
    }
    AddFigures(progress.figures(), &sums_);
    changed_.NotifyAll();
  }

  mutable Mutex mu_;
  CondVar changed_;
  std::optional<uint64_t> member_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> retired_ ABSL_GUARDED_BY(mu_);
  std::string holder_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> disowned_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> unwanted_ ABSL_GUARDED_BY(mu_);
  v1::BookVersions books_ ABSL_GUARDED_BY(mu_);
  v1::JobPhase phase_ ABSL_GUARDED_BY(mu_) = v1::TRAINING;
  std::string error_ ABSL_GUARDED_BY(mu_);
  v1::GetModelResponse model_ ABSL_GUARDED_BY(mu_);
  std::deque<v1::AcquireWorkResponse> leases_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::deque<absl::Status>> errors_ ABSL_GUARDED_BY(mu_);
  std::function<void()> heartbeat_hook_ ABSL_GUARDED_BY(mu_);
  std::function<void()> grant_hook_ ABSL_GUARDED_BY(mu_);
  int64_t granted_ ABSL_GUARDED_BY(mu_) = 0;
  bool withheld_ ABSL_GUARDED_BY(mu_) = false;
  int64_t completed_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, int64_t> completed_by_lease_ ABSL_GUARDED_BY(mu_);
  v1::WorkerFigures sums_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::RegisterRequest> registered_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::AdmitRequest> asked_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> sequences_ ABSL_GUARDED_BY(mu_);
  int heartbeats_ ABSL_GUARDED_BY(mu_) = 0;
  int left_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_FAKE_CHIEF_H_
