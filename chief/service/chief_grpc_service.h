// The gRPC shell around the chief's handler.
#ifndef KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_
#define KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_

#include <utility>

#include "chief/service/access_policy.h"
#include "core/client/services/chief_service.h"
#include "core/rpc/grpc_status.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {

// `handler` outlives the service; calls that change the job need what `policy` asks for.
class ChiefGrpcService final : public v1::ChiefService::Service {
 public:
  explicit ChiefGrpcService(ChiefService* handler, AccessPolicy policy = AccessPolicy())
      : handler_(handler), policy_(std::move(policy)) {}

  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override {
    return ToGrpcStatus(handler_->Register(*request, response));
  }
  grpc::Status GetModel(grpc::ServerContext*, const v1::GetModelRequest* request,
                        v1::GetModelResponse* response) override {
    return ToGrpcStatus(handler_->GetModel(*request, response));
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    return ToGrpcStatus(handler_->Heartbeat(*request, response));
  }
  grpc::Status AcquireWork(grpc::ServerContext*, const v1::AcquireWorkRequest* request,
                           v1::AcquireWorkResponse* response) override {
    return ToGrpcStatus(handler_->AcquireWork(*request, response));
  }
  grpc::Status Admit(grpc::ServerContext*, const v1::AdmitRequest* request,
                     v1::AdmitResponse* response) override {
    return ToGrpcStatus(handler_->Admit(*request, response));
  }
  grpc::Status SetMode(grpc::ServerContext* context, const v1::SetModeRequest* request,
                       v1::SetModeResponse* response) override;
  grpc::Status EndTraining(grpc::ServerContext* context, const v1::EndTrainingRequest* request,
                           v1::EndTrainingResponse* response) override;
  grpc::Status Leave(grpc::ServerContext*, const v1::LeaveRequest* request,
                     v1::LeaveResponse* response) override {
    return ToGrpcStatus(handler_->Leave(*request, response));
  }
  grpc::Status AcknowledgeEvaluation(grpc::ServerContext*,
                                     const v1::AcknowledgeEvaluationRequest* request,
                                     v1::AcknowledgeEvaluationResponse* response) override {
    return ToGrpcStatus(handler_->AcknowledgeEvaluation(*request, response));
  }
  grpc::Status GetJobStatus(grpc::ServerContext*, const v1::GetJobStatusRequest* request,
                            v1::JobStatus* response) override {
    return ToGrpcStatus(handler_->GetJobStatus(*request, response));
  }

 private:
  ChiefService* const handler_;
  const AccessPolicy policy_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_
