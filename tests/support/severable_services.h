// Services that can be cut off, as if the peer or the caller had died, and held back.
#ifndef KEELSON_TESTS_SUPPORT_SEVERABLE_SERVICES_H_
#define KEELSON_TESTS_SUPPORT_SEVERABLE_SERVICES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/parameter_control.h"

namespace keelson {

// Holds back work after a number of tickets, so that a test finds the job in the middle however
// fast it is. Thread-safe.
class WorkGate {
 public:
  // Closes when `tickets` in all have been granted; a lease may lead a little beyond.
  void CloseAt(int64_t tickets);
  void Open();

  void CountGranted(int64_t tickets);
  // Waits a moment for the gate to be open; returns whether it is.
  bool WaitBriefly();

 private:
  bool IsOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  CondVar changed_;
  int64_t granted_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t limit_ ABSL_GUARDED_BY(mu_) = INT64_MAX;
};

// A worker's way to the chief. Thread-safe.
class SeverableChiefService : public ChiefService {
 public:
  // `gate` outlives this.
  SeverableChiefService(std::unique_ptr<ChiefService> chief, WorkGate* gate)
      : chief_(std::move(chief)), gate_(gate) {}

  // From now on no call reaches the chief: UNAVAILABLE.
  void Sever();
  // Severs as soon as a lease of at least `tickets` tickets has been granted: the worker trains on
  // it, and cannot report it.
  void SeverAfterLeaseOf(int64_t tickets) { sever_after_ = tickets; }
  void WaitUntilSevered();

  absl::Status Register(const v1::RegisterRequest& request,
                        v1::RegisterResponse* response) override;
  absl::Status GetModel(const v1::GetModelRequest& request,
                        v1::GetModelResponse* response) override;
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override;
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override;
  absl::Status Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) override;
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse* response) override;
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse* response) override;
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) override;
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse* response) override;
  absl::Status GetJobStatus(const v1::GetJobStatusRequest& request,
                            v1::JobStatus* response) override;

 private:
  absl::Status Call(absl::FunctionRef<absl::Status()> call);
  absl::Status AcquireWhenOpen(const v1::AcquireWorkRequest& request,
                               v1::AcquireWorkResponse* response);

  const std::unique_ptr<ChiefService> chief_;
  WorkGate* const gate_;
  std::atomic<int64_t> sever_after_{INT64_MAX};

  Mutex mu_;
  CondVar changed_;
  bool severed_ ABSL_GUARDED_BY(mu_) = false;
};

// The chief's way to a server. Thread-safe.
class SeverableParameterService : public ParameterControl {
 public:
  explicit SeverableParameterService(std::unique_ptr<ParameterControl> server)
      : server_(std::move(server)) {}

  void Sever() { severed_ = true; }

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override;
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override;
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override;
  absl::Status Attend(const v1::AttendRequest& request, v1::ShardStatus* response) override;
  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override;
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override;
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;

 private:
  absl::Status Call(absl::FunctionRef<absl::Status()> call);

  const std::unique_ptr<ParameterControl> server_;
  std::atomic<bool> severed_{false};
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_SEVERABLE_SERVICES_H_
