#include "testing/services/faulty_chief_service.h"

namespace keelson {

template <typename Request, typename Response>
absl::Status FaultyChiefService::Forward(Method<ChiefService, Request, Response*> method,
                                         const Request& request, Response* response) {
  return Call(request, response, [&] {
    return chief_ == nullptr ? absl::OkStatus() : (chief_->*method)(request, response);
  });
}

absl::Status FaultyChiefService::Register(const v1::RegisterRequest& request,
                                          v1::RegisterResponse* response) {
  return Forward(&ChiefService::Register, request, response);
}

absl::Status FaultyChiefService::GetModel(const v1::GetModelRequest& request,
                                          v1::GetModelResponse* response) {
  return Forward(&ChiefService::GetModel, request, response);
}

absl::Status FaultyChiefService::Heartbeat(const v1::HeartbeatRequest& request,
                                           v1::HeartbeatResponse* response) {
  return Forward(&ChiefService::Heartbeat, request, response);
}

absl::Status FaultyChiefService::AcquireWork(const v1::AcquireWorkRequest& request,
                                             v1::AcquireWorkResponse* response) {
  return Forward(&ChiefService::AcquireWork, request, response);
}

absl::Status FaultyChiefService::Admit(const v1::AdmitRequest& request,
                                       v1::AdmitResponse* response) {
  return Forward(&ChiefService::Admit, request, response);
}

absl::Status FaultyChiefService::SetMode(const v1::SetModeRequest& request,
                                         v1::SetModeResponse* response) {
  return Forward(&ChiefService::SetMode, request, response);
}

absl::Status FaultyChiefService::EndTraining(const v1::EndTrainingRequest& request,
                                             v1::EndTrainingResponse* response) {
  return Forward(&ChiefService::EndTraining, request, response);
}

absl::Status FaultyChiefService::SaveSnapshot(const v1::SaveSnapshotRequest& request,
                                              v1::SaveSnapshotResponse* response) {
  return Forward(&ChiefService::SaveSnapshot, request, response);
}

absl::Status FaultyChiefService::Leave(const v1::LeaveRequest& request,
                                       v1::LeaveResponse* response) {
  return Forward(&ChiefService::Leave, request, response);
}

absl::Status FaultyChiefService::AcknowledgeEvaluation(
    const v1::AcknowledgeEvaluationRequest& request, v1::AcknowledgeEvaluationResponse* response) {
  return Forward(&ChiefService::AcknowledgeEvaluation, request, response);
}

absl::Status FaultyChiefService::ProposeJob(const v1::ProposeJobRequest& request,
                                            v1::ProposeJobResponse* response) {
  return Forward(&ChiefService::ProposeJob, request, response);
}

absl::Status FaultyChiefService::AnnounceHost(const v1::AnnounceHostRequest& request,
                                              v1::AnnounceHostResponse* response) {
  return Forward(&ChiefService::AnnounceHost, request, response);
}

absl::Status FaultyChiefService::GetJobStatus(const v1::GetJobStatusRequest& request,
                                              v1::JobStatus* response) {
  return Forward(&ChiefService::GetJobStatus, request, response);
}

}  // namespace keelson
