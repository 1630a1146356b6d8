#include "chief/service/chief_grpc_service.h"

#include <string>

#include "core/rpc/grpc_status.h"

namespace keelson {
namespace {

Caller CallerOf(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return {};
  return {std::string(found->second.data(), found->second.size())};
}

}  // namespace

grpc::Status ChiefGrpcService::Register(grpc::ServerContext* context,
                                        const v1::RegisterRequest* request,
                                        v1::RegisterResponse* response) {
  return ToGrpcStatus(handler_->Register(*request, response));
}

grpc::Status ChiefGrpcService::GetModel(grpc::ServerContext* context,
                                        const v1::GetModelRequest* request,
                                        v1::GetModelResponse* response) {
  return ToGrpcStatus(handler_->GetModel(*request, response));
}

grpc::Status ChiefGrpcService::Heartbeat(grpc::ServerContext* context,
                                         const v1::HeartbeatRequest* request,
                                         v1::HeartbeatResponse* response) {
  return ToGrpcStatus(handler_->Heartbeat(*request, response));
}

grpc::Status ChiefGrpcService::AcquireWork(grpc::ServerContext* context,
                                           const v1::AcquireWorkRequest* request,
                                           v1::AcquireWorkResponse* response) {
  return ToGrpcStatus(handler_->AcquireWork(*request, response));
}

grpc::Status ChiefGrpcService::Admit(grpc::ServerContext* context, const v1::AdmitRequest* request,
                                     v1::AdmitResponse* response) {
  return ToGrpcStatus(handler_->Admit(*request, response));
}

grpc::Status ChiefGrpcService::SetMode(grpc::ServerContext* context,
                                       const v1::SetModeRequest* request,
                                       v1::SetModeResponse* response) {
  const absl::Status allowed = policy_.CheckSetMode(CallerOf(*context));
  if (!allowed.ok()) return ToGrpcStatus(allowed);
  return ToGrpcStatus(handler_->SetMode(*request, response));
}

grpc::Status ChiefGrpcService::EndTraining(grpc::ServerContext* context,
                                           const v1::EndTrainingRequest* request,
                                           v1::EndTrainingResponse* response) {
  const absl::Status allowed = policy_.CheckEndTraining(CallerOf(*context), request->has_header());
  if (!allowed.ok()) return ToGrpcStatus(allowed);
  return ToGrpcStatus(handler_->EndTraining(*request, response));
}

grpc::Status ChiefGrpcService::Leave(grpc::ServerContext* context, const v1::LeaveRequest* request,
                                     v1::LeaveResponse* response) {
  return ToGrpcStatus(handler_->Leave(*request, response));
}

grpc::Status ChiefGrpcService::AcknowledgeEvaluation(
    grpc::ServerContext* context, const v1::AcknowledgeEvaluationRequest* request,
    v1::AcknowledgeEvaluationResponse* response) {
  return ToGrpcStatus(handler_->AcknowledgeEvaluation(*request, response));
}

grpc::Status ChiefGrpcService::GetJobStatus(grpc::ServerContext* context,
                                            const v1::GetJobStatusRequest* request,
                                            v1::JobStatus* response) {
  return ToGrpcStatus(handler_->GetJobStatus(*request, response));
}

}  // namespace keelson
