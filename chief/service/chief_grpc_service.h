// The gRPC shell around the chief's handler.
#ifndef KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_
#define KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/client/services/chief_service.h"
#include "core/rpc/access.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/guarded_call.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {

// Requests are read by their methods, after the callers were checked.
class ChiefGrpcService final
    : public v1::ChiefService::WithStreamedUnaryMethod_Register<
          v1::ChiefService::WithStreamedUnaryMethod_GetModel<
              v1::ChiefService::WithStreamedUnaryMethod_Heartbeat<
                  v1::ChiefService::WithStreamedUnaryMethod_AcquireWork<
                      v1::ChiefService::WithStreamedUnaryMethod_Admit<
                          v1::ChiefService::WithStreamedUnaryMethod_Leave<
                              v1::ChiefService::WithStreamedUnaryMethod_AcknowledgeEvaluation<
                                  v1::ChiefService::WithStreamedUnaryMethod_SetMode<
                                      v1::ChiefService::WithStreamedUnaryMethod_EndTraining<
                                          v1::ChiefService::Service>>>>>>>>> {
 public:
  // Both outlive the service. `guard` checks the callers; null: everyone may call.
  explicit ChiefGrpcService(ChiefService* handler, const AccessGuard* guard = nullptr)
      : handler_(handler), guard_(guard) {}

 private:
  template <typename Request, typename Response>
  using Unary = grpc::ServerUnaryStreamer<Request, Response>;

  grpc::Status StreamedRegister(grpc::ServerContext* context,
                                Unary<v1::RegisterRequest, v1::RegisterResponse>* call) override {
    return Serve("Register", context, call, &ChiefService::Register);
  }
  grpc::Status StreamedGetModel(grpc::ServerContext* context,
                                Unary<v1::GetModelRequest, v1::GetModelResponse>* call) override {
    return Serve("GetModel", context, call, &ChiefService::GetModel);
  }
  grpc::Status StreamedHeartbeat(
      grpc::ServerContext* context,
      Unary<v1::HeartbeatRequest, v1::HeartbeatResponse>* call) override {
    return Serve("Heartbeat", context, call, &ChiefService::Heartbeat);
  }
  grpc::Status StreamedAcquireWork(
      grpc::ServerContext* context,
      Unary<v1::AcquireWorkRequest, v1::AcquireWorkResponse>* call) override {
    return Serve("AcquireWork", context, call, &ChiefService::AcquireWork);
  }
  grpc::Status StreamedAdmit(grpc::ServerContext* context,
                             Unary<v1::AdmitRequest, v1::AdmitResponse>* call) override {
    return Serve("Admit", context, call, &ChiefService::Admit);
  }
  grpc::Status StreamedLeave(grpc::ServerContext* context,
                             Unary<v1::LeaveRequest, v1::LeaveResponse>* call) override {
    return Serve("Leave", context, call, &ChiefService::Leave);
  }
  grpc::Status StreamedAcknowledgeEvaluation(
      grpc::ServerContext* context,
      Unary<v1::AcknowledgeEvaluationRequest, v1::AcknowledgeEvaluationResponse>* call) override {
    return Serve("AcknowledgeEvaluation", context, call, &ChiefService::AcknowledgeEvaluation);
  }
  grpc::Status StreamedSetMode(grpc::ServerContext* context,
                               Unary<v1::SetModeRequest, v1::SetModeResponse>* call) override {
    return Serve("SetMode", context, call, &ChiefService::SetMode);
  }
  // Anyone may ask: a request that does not end must not hold a thread.
  grpc::Status GetJobStatus(grpc::ServerContext*, const v1::GetJobStatusRequest* request,
                            v1::JobStatus* response) override {
    return ToGrpcStatus(handler_->GetJobStatus(*request, response));
  }
  // A member ends the training under its own name, which the handler checks; only an operator has
  // none.
  grpc::Status StreamedEndTraining(
      grpc::ServerContext* context,
      Unary<v1::EndTrainingRequest, v1::EndTrainingResponse>* call) override;

  static std::string FullName(absl::string_view method) {
    return absl::StrCat("/", v1::ChiefService::service_full_name(), "/", method);
  }
  template <typename Request, typename Response>
  grpc::Status Serve(absl::string_view method, grpc::ServerContext* context,
                     Unary<Request, Response>* call,
                     absl::Status (ChiefService::*handle)(const Request&, Response*)) {
    return ServeUnary(guard_, FullName(method), context, call,
                      [&](const Request& request, Response* response, CallerKind) {
                        return (handler_->*handle)(request, response);
                      });
  }

  ChiefService* const handler_;
  const AccessGuard* const guard_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_
