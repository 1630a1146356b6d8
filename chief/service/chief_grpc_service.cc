#include "chief/service/chief_grpc_service.h"

namespace keelson {

ChiefGrpcService::ChiefGrpcService(ChiefService* handler, const AccessGuard* guard)
    : handler_(handler), calls_(guard) {
  Serve("Register", &ChiefService::Register);
  Serve("GetModel", &ChiefService::GetModel);
  Serve("Heartbeat", &ChiefService::Heartbeat);
  Serve("AcquireWork", &ChiefService::AcquireWork);
  Serve("Admit", &ChiefService::Admit);
  Serve("Leave", &ChiefService::Leave);
  Serve("AcknowledgeEvaluation", &ChiefService::AcknowledgeEvaluation);
  Serve("SetMode", &ChiefService::SetMode);
  Serve("GetJobStatus", &ChiefService::GetJobStatus);
  const char* const service = v1::ChiefService::service_full_name();
  MarkMethodStreamed(MethodIndex(service, "EndTraining"),
                     calls_.Unary<v1::EndTrainingRequest, v1::EndTrainingResponse>(
                         FullMethodName(service, "EndTraining"),
                         [this](const auto& request, auto* response, CallerKind kind) {
                           return EndTrainingOf(request, response, kind);
                         }));
}

template <typename Request, typename Response>
void ChiefGrpcService::Serve(absl::string_view method,
                             absl::Status (ChiefService::*handle)(const Request&, Response*)) {
  MarkMethodStreamed(MethodIndex(v1::ChiefService::service_full_name(), method),
                     calls_.Unary<Request, Response>(
                         FullMethodName(v1::ChiefService::service_full_name(), method),
                         [this, handle](const Request& request, Response* response, CallerKind) {
                           return (handler_->*handle)(request, response);
                         }));
}

absl::Status ChiefGrpcService::EndTrainingOf(const v1::EndTrainingRequest& request,
                                             v1::EndTrainingResponse* response, CallerKind kind) {
  if (kind != CallerKind::kOperator && !request.has_header()) {
    return absl::PermissionDeniedError("EndTraining: expected the header of a member, found none");
  }
  return handler_->EndTraining(request, response);
}

}  // namespace keelson
