// A chief for the worker's tests: it hands out the leases that the test has prepared and adds up
// the reports it gets.
#ifndef KEELSON_WORKER_FAKE_CHIEF_H_
#define KEELSON_WORKER_FAKE_CHIEF_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "testing/services/faulty_chief_service.h"

namespace keelson {

// Thread-safe. AcquireWork does not wait: without a lease it returns the phase.
class FakeChief : public FaultyChiefService {
 public:
  FakeChief();

  // ---- Leases and answers that a test arranges.

  // A lease of `tickets` steps from `step`, 4 records each.
  static v1::AcquireWorkResponse MakeLease(uint64_t id, int64_t step, int tickets);
  // The job is over when all leases are done.
  void AddLease(const v1::AcquireWorkResponse& lease);
  void AddLease(uint64_t id, int64_t step, int tickets) { AddLease(MakeLease(id, step, tickets)); }
  // Adds a lease for an attempt at a step; a `contested` one takes fewer gradients than it has
  // tickets.
  void AddSynchronousLease(uint64_t id, int64_t step, uint32_t attempt, bool contested);
  // The lease's gradient will not be admitted.
  void DoNotAdmit(uint64_t lease_id);
  // This many tickets will not be completed.
  void WriteOff(int tickets);
  // While set, the job is not over when all leases are done: more will come.
  void Withhold(bool withheld);
  void SetModel(const v1::GetModelResponse& model);
  // Answers to heartbeats and to requests for work say these addresses of the shards to who does
  // not know the version.
  void MoveServers(uint64_t version, std::vector<std::string> addresses);
  void SetPhase(v1::JobPhase phase, const std::string& error = "");
  // Sets the StateVersions of all answers.
  void SetStateVersions(uint64_t current, uint64_t stored);
  // A chief that was restarted: calls are ABORTED until the worker registers again. It keeps the
  // leases but for `disowned`. `refused` is called once, after the next heartbeat was answered and
  // before the worker gets the answer.
  void Forget(std::set<uint64_t> disowned = {}, std::function<void()> refused = nullptr);
  // The membership is over; leases that the worker holds need not be completed.
  void Lose();
  // Another process, `peer`, has the task.
  void Replace(const std::string& peer);
  // `granted` is called once, after a lease was granted and before the worker gets it.
  void OnNextGrant(std::function<void()> granted);

  // ---- Queries of a test.

  void AwaitHeartbeats(int more);
  // Waits until so many registrations were answered in all, refusals by FailNext not counted.
  void AwaitRegistrations(int count);
  void AwaitGrants(int count);
  void AwaitCompleted(uint64_t lease_id, int64_t steps);
  void AwaitNonFiniteLoss();
  // Waits until so many pushes were reported as refused in all.
  void AwaitRefused(size_t count);
  std::vector<v1::RegisterRequest> registered() const { return Requests(&ChiefService::Register); }
  std::map<uint64_t, int64_t> completed() const;
  v1::WorkerFigures sums() const;
  std::vector<v1::RefusedPush> refused() const;
  std::vector<uint64_t> sequences() const;
  int left() const { return Count(&ChiefService::Leave); }

 private:
  absl::Status DoRegister(const v1::RegisterRequest& request, v1::RegisterResponse* response);
  absl::Status DoGetModel(const v1::GetModelRequest& request, v1::GetModelResponse* response);
  absl::Status DoHeartbeat(const v1::HeartbeatRequest& request, v1::HeartbeatResponse* response);
  absl::Status DoAcquireWork(const v1::AcquireWorkRequest& request,
                             v1::AcquireWorkResponse* response);
  absl::Status DoAdmit(const v1::AdmitRequest& request, v1::AdmitResponse* response);
  absl::Status DoLeave(const v1::LeaveRequest& request);
  absl::Status CheckMember(const v1::RequestHeader& header) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <typename Request, typename Response>
  void TellServers(const Request& request, Response* response) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Grant(v1::AcquireWorkResponse* response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Accept(const v1::WorkerProgress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  CondVar changed_;
  std::optional<uint64_t> member_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> retired_ ABSL_GUARDED_BY(mu_);
  std::string holder_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> disowned_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> unwanted_ ABSL_GUARDED_BY(mu_);
  v1::StateVersions state_versions_ ABSL_GUARDED_BY(mu_);
  v1::JobPhase phase_ ABSL_GUARDED_BY(mu_) = v1::TRAINING;
  std::string error_ ABSL_GUARDED_BY(mu_);
  v1::GetModelResponse model_ ABSL_GUARDED_BY(mu_);
  uint64_t servers_version_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> moved_to_ ABSL_GUARDED_BY(mu_);
  std::deque<v1::AcquireWorkResponse> leases_ ABSL_GUARDED_BY(mu_);
  std::function<void()> heartbeat_hook_ ABSL_GUARDED_BY(mu_);
  std::function<void()> grant_hook_ ABSL_GUARDED_BY(mu_);
  int64_t granted_ ABSL_GUARDED_BY(mu_) = 0;
  bool withheld_ ABSL_GUARDED_BY(mu_) = false;
  int64_t completed_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, int64_t> completed_by_lease_ ABSL_GUARDED_BY(mu_);
  v1::WorkerFigures sums_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::RefusedPush> refused_ ABSL_GUARDED_BY(mu_);
  int heartbeats_ ABSL_GUARDED_BY(mu_) = 0;     // that were answered
  int registrations_ ABSL_GUARDED_BY(mu_) = 0;  // that were answered
};

}  // namespace keelson

#endif  // KEELSON_WORKER_FAKE_CHIEF_H_
