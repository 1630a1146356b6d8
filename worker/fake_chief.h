// A chief for the worker's tests: it hands out the leases that the test has prepared, keeps what it
// is told, and fails on request.
#ifndef KEELSON_WORKER_FAKE_CHIEF_H_
#define KEELSON_WORKER_FAKE_CHIEF_H_

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/client/chief_service.h"

namespace keelson {

// Thread-safe. AcquireWork does not wait: without a lease to give it tells the phase.
class FakeChief : public ChiefService {
 public:
  absl::Status Register(const v1::RegisterRequest& request, v1::RegisterResponse*) override {
    MutexLock lock(&mu_);
    registered_.push_back(request);
    changed_.NotifyAll();
    const absl::Status status = NextError("Register");
    if (status.ok()) member_ = true;
    return status;
  }
  absl::Status GetModel(const v1::GetModelRequest&, v1::GetModelResponse* response) override {
    MutexLock lock(&mu_);
    const absl::Status status = MemberError("GetModel");
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
      status = MemberError("Heartbeat");
      if (status.ok()) Accept(request.progress());
      response->set_phase(phase_);
      response->set_error(error_);
      std::swap(hook, heartbeat_hook_);
      changed_.NotifyAll();
    }
    if (hook != nullptr) hook();
    return status;
  }
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override {
    MutexLock lock(&mu_);
    sequences_.push_back(request.sequence());
    const absl::Status status = MemberError("AcquireWork");
    if (!status.ok()) return status;
    Accept(request.progress());
    response->Clear();
    response->set_phase(phase_);
    if (phase_ != v1::TRAINING) return status;
    if (!leases_.empty()) {
      *response = leases_.front();
      leases_.pop_front();
    } else if (completed_ >= granted_ && !withheld_) {
      response->set_phase(v1::FINISHING);
    }
    return status;
  }
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse*) override {
    MutexLock lock(&mu_);
    ++left_;
    const absl::Status status = MemberError("Leave");
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

  // ---- What a test arranges.

  // A lease of `tickets` steps from `step`, 4 records each. The job is over when all are done.
  void AddLease(uint64_t id, int64_t step, int tickets) {
    MutexLock lock(&mu_);
    v1::AcquireWorkResponse lease;
    lease.set_lease_id(id);
    lease.set_phase(v1::TRAINING);
    for (int64_t i = step; i < step + tickets; ++i) {
      v1::StepTicket* ticket = lease.add_tickets();
      ticket->set_step(i);
      ticket->mutable_records()->set_begin(4 * i % 32);
      ticket->mutable_records()->set_end(4 * i % 32 + 4);
    }
    leases_.push_back(std::move(lease));
    granted_ += tickets;
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
  // The next calls of `method` fail with these, one after the other, before they do anything.
  void FailNext(const std::string& method, const std::vector<absl::Status>& errors) {
    MutexLock lock(&mu_);
    std::deque<absl::Status>& queue = errors_[method];
    queue.insert(queue.end(), errors.begin(), errors.end());
  }
  // Calls are ABORTED until the worker registers again; what it holds is not expected any more.
  // `refused` is called once, when the next heartbeat has been refused and before it is told so.
  void Lose(std::function<void()> refused = nullptr) {
    MutexLock lock(&mu_);
    member_ = false;
    granted_ = 0;
    completed_ = 0;
    completed_by_lease_.clear();
    heartbeat_hook_ = std::move(refused);
  }

  // ---- What a test looks at.

  void AwaitHeartbeats(int more) {
    MutexLock lock(&mu_);
    const int count = heartbeats_ + more;
    while (heartbeats_ < count) changed_.Wait(&mu_);
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
  v1::WorkerProgress sums() const {
    MutexLock lock(&mu_);
    return sums_;
  }
  std::vector<uint64_t> sequences() const {
    MutexLock lock(&mu_);
    return sequences_;
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
  absl::Status MemberError(const std::string& method) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    absl::Status status = NextError(method);
    if (!status.ok() || member_) return status;
    return absl::AbortedError("lost");
  }
  void Accept(const v1::WorkerProgress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const v1::LeaseProgress& lease : progress.leases()) {
      int64_t& completed = completed_by_lease_[lease.lease_id()];
      if (lease.completed_steps() <= completed) continue;
      completed_ += lease.completed_steps() - completed;
      completed = lease.completed_steps();
    }
    sums_.set_steps(sums_.steps() + progress.steps());
    sums_.set_examples(sums_.examples() + progress.examples());
    sums_.set_loss_sum(sums_.loss_sum() + progress.loss_sum());
    sums_.set_staleness_sum(sums_.staleness_sum() + progress.staleness_sum());
    sums_.set_push_retries(sums_.push_retries() + progress.push_retries());
    sums_.set_credit_wait_seconds(sums_.credit_wait_seconds() + progress.credit_wait_seconds());
    sums_.set_bytes_pushed(sums_.bytes_pushed() + progress.bytes_pushed());
    sums_.set_bytes_pulled(sums_.bytes_pulled() + progress.bytes_pulled());
    sums_.set_non_finite_losses(sums_.non_finite_losses() + progress.non_finite_losses());
    changed_.NotifyAll();
  }

  mutable Mutex mu_;
  CondVar changed_;
  bool member_ ABSL_GUARDED_BY(mu_) = false;
  v1::JobPhase phase_ ABSL_GUARDED_BY(mu_) = v1::TRAINING;
  std::string error_ ABSL_GUARDED_BY(mu_);
  v1::GetModelResponse model_ ABSL_GUARDED_BY(mu_);
  std::deque<v1::AcquireWorkResponse> leases_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::deque<absl::Status>> errors_ ABSL_GUARDED_BY(mu_);
  std::function<void()> heartbeat_hook_ ABSL_GUARDED_BY(mu_);
  int64_t granted_ ABSL_GUARDED_BY(mu_) = 0;
  bool withheld_ ABSL_GUARDED_BY(mu_) = false;
  int64_t completed_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, int64_t> completed_by_lease_ ABSL_GUARDED_BY(mu_);
  v1::WorkerProgress sums_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::RegisterRequest> registered_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> sequences_ ABSL_GUARDED_BY(mu_);
  int heartbeats_ ABSL_GUARDED_BY(mu_) = 0;
  int left_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_FAKE_CHIEF_H_
