// The chief's calls, message in, message out; no transport. Callers in the same process use it
// directly.
#ifndef KEELSON_CHIEF_SERVICE_CHIEF_HANDLER_H_
#define KEELSON_CHIEF_SERVICE_CHIEF_HANDLER_H_

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/coordination/coordinator.h"
#include "chief/servers/server_state.h"
#include "core/base/stop_signal.h"
#include "core/client/services/chief_service.h"

namespace keelson {

v1::JobPhase JobPhaseToProto(JobPhase phase);

// Thread-safe. Converts; the coordinator decides. Calls that wait do so for 20 s at most.
class ChiefHandler : public ChiefService {
 public:
  // `coordinator` outlives the handler. `servers` returns the state of the job's servers at any
  // time; it may be null. `config` is the job's, for those who propose one.
  explicit ChiefHandler(Coordinator* coordinator,
                        std::function<std::vector<ServerView>()> servers = nullptr,
                        v1::TrainConfig config = {})
      : coordinator_(coordinator), servers_(std::move(servers)), config_(std::move(config)) {}

  absl::Status Register(const v1::RegisterRequest& request,
                        v1::RegisterResponse* response) override;
  absl::Status GetModel(const v1::GetModelRequest& request,
                        v1::GetModelResponse* response) override;
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override;
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override;
  // GetModel and AcquireWork without a thread that waits; see MemberRequests. `done` is
  // called once. The function that is returned (null: `done` has been called) ends the wait of a
  // caller that is gone, with CANCELLED.
  using Cancel = std::function<void()>;
  Cancel BeginGetModel(const v1::GetModelRequest& request,
                       std::function<void(absl::StatusOr<v1::GetModelResponse>)> done);
  Cancel BeginAcquireWork(const v1::AcquireWorkRequest& request,
                          std::function<void(absl::StatusOr<v1::AcquireWorkResponse>)> done);
  // See MemberRequests::AnswerWaiting.
  void AnswerWaiting(const StopSignal& stop) { coordinator_->requests()->AnswerWaiting(stop); }

  absl::Status Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) override;
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse* response) override;
  // Callers in this process always may end the training and have snapshots written; AccessPolicy
  // decides for others.
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse* response) override;
  absl::Status SaveSnapshot(const v1::SaveSnapshotRequest& request,
                            v1::SaveSnapshotResponse* response) override;
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) override;
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse* response) override;
  absl::Status ProposeJob(const v1::ProposeJobRequest& request,
                          v1::ProposeJobResponse* response) override;
  absl::Status GetJobStatus(const v1::GetJobStatusRequest& request,
                            v1::JobStatus* response) override;

 private:
  v1::GetModelResponse ModelResponse(const ModelLocation& model) const;
  v1::AcquireWorkResponse WorkResponse(const std::optional<WorkLease>& lease,
                                       uint64_t servers_version) const;
  // How the wait of a request ends; null: it has been answered.
  template <typename Response>
  Cancel CancelOf(std::optional<MemberRequests::RequestId> id,
                  std::function<void(absl::StatusOr<Response>)> done);

  Coordinator* const coordinator_;
  const std::function<std::vector<ServerView>()> servers_;
  const v1::TrainConfig config_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVICE_CHIEF_HANDLER_H_
