// The chief as the other tasks see it: proto/keelson/v1/chief_service.proto, which says what each
// call does and how it fails. The gRPC client implements it, and so does the chief's handler, which
// callers in the same process use directly.
#ifndef KEELSON_CORE_CLIENT_SERVICES_CHIEF_SERVICE_H_
#define KEELSON_CORE_CLIENT_SERVICES_CHIEF_SERVICE_H_

#include "absl/status/status.h"
#include "keelson/v1/chief_service.pb.h"

namespace keelson {

// Thread-safe. Calls block, but not for ever: those that wait have `max_wait`, and remote ones end
// with DEADLINE_EXCEEDED some time after it.
class ChiefService {
 public:
  virtual ~ChiefService() = default;

  virtual absl::Status Register(const v1::RegisterRequest& request,
                                v1::RegisterResponse* response) = 0;
  virtual absl::Status GetModel(const v1::GetModelRequest& request,
                                v1::GetModelResponse* response) = 0;
  virtual absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                                 v1::HeartbeatResponse* response) = 0;
  virtual absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                                   v1::AcquireWorkResponse* response) = 0;
  virtual absl::Status Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) = 0;
  virtual absl::Status SetMode(const v1::SetModeRequest& request,
                               v1::SetModeResponse* response) = 0;
  virtual absl::Status EndTraining(const v1::EndTrainingRequest& request,
                                   v1::EndTrainingResponse* response) = 0;
  virtual absl::Status SaveSnapshot(const v1::SaveSnapshotRequest& request,
                                    v1::SaveSnapshotResponse* response) = 0;
  virtual absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) = 0;
  virtual absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                             v1::AcknowledgeEvaluationResponse* response) = 0;
  virtual absl::Status ProposeJob(const v1::ProposeJobRequest& request,
                                  v1::ProposeJobResponse* response) = 0;
  // Only a chief whose cluster does not list its tasks takes it: others refuse.
  virtual absl::Status AnnounceHost(const v1::AnnounceHostRequest& request,
                                    v1::AnnounceHostResponse* response) {
    return absl::FailedPreconditionError(
        "AnnounceHost: this chief's cluster lists the addresses of its tasks");
  }
  virtual absl::Status GetJobStatus(const v1::GetJobStatusRequest& request,
                                    v1::JobStatus* response) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_CHIEF_SERVICE_H_
