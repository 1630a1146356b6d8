#include "chief/service/proposal_grpc_service.h"

#include <utility>

#include "core/rpc/guarded_call.h"

namespace keelson {

ProposalGrpcService::ProposalGrpcService(Propose propose, v1::JobStatus job,
                                         const AccessGuard* guard)
    : calls_(guard) {
  Serve<v1::ProposeJobRequest, v1::ProposeJobResponse>("ProposeJob", std::move(propose));
  Serve<v1::GetJobStatusRequest, v1::JobStatus>(
      "GetJobStatus",
      [job = std::move(job)](const v1::GetJobStatusRequest&, v1::JobStatus* response) {
        *response = job;
        return absl::OkStatus();
      });
  using absl::StatusCode;
  Refuse<v1::GetModelRequest, v1::GetModelResponse>("GetModel", StatusCode::kAborted);
  Refuse<v1::HeartbeatRequest, v1::HeartbeatResponse>("Heartbeat", StatusCode::kAborted);
  Refuse<v1::AcquireWorkRequest, v1::AcquireWorkResponse>("AcquireWork", StatusCode::kAborted);
  Refuse<v1::AdmitRequest, v1::AdmitResponse>("Admit", StatusCode::kAborted);
  Refuse<v1::AcknowledgeEvaluationRequest, v1::AcknowledgeEvaluationResponse>(
      "AcknowledgeEvaluation", StatusCode::kAborted);
  Refuse<v1::RegisterRequest, v1::RegisterResponse>("Register", StatusCode::kUnavailable);
  Refuse<v1::LeaveRequest, v1::LeaveResponse>("Leave", StatusCode::kUnavailable);
  Refuse<v1::SetModeRequest, v1::SetModeResponse>("SetMode", StatusCode::kUnavailable);
  Refuse<v1::EndTrainingRequest, v1::EndTrainingResponse>("EndTraining", StatusCode::kUnavailable);
  Refuse<v1::AnnounceHostRequest, v1::AnnounceHostResponse>("AnnounceHost",
                                                            StatusCode::kUnavailable);
  Refuse<v1::SaveSnapshotRequest, v1::SaveSnapshotResponse>("SaveSnapshot",
                                                            StatusCode::kUnavailable);
}

template <typename Request, typename Response>
void ProposalGrpcService::Serve(
    absl::string_view method,
    std::function<absl::Status(const Request& request, Response* response)> handle) {
  const char* const service = v1::ChiefService::service_full_name();
  MarkMethodStreamed(
      MethodIndex(service, method),
      calls_.Unary<Request, Response>(
          FullMethodName(service, method),
          [handle = std::move(handle)](const Request& request, Response* response, CallerKind) {
            return handle(request, response);
          }));
}

template <typename Request, typename Response>
void ProposalGrpcService::Refuse(absl::string_view method, absl::StatusCode code) {
  Serve<Request, Response>(method, [code](const Request&, Response*) {
    return absl::Status(code, "the chief waits for a script that says what is trained");
  });
}

}  // namespace keelson
