#include "chief/service/chief_grpc_service.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/rpc/waiting_call.h"

namespace keelson {
namespace {

// PERMISSION_DENIED: a member names a task of another role than the one in which it calls.
absl::Status CheckRoleOfTask(absl::string_view method, CallerKind kind, v1::Role role) {
  const bool own = (kind != CallerKind::kWorker || role == v1::ROLE_WORKER) &&
                   (kind != CallerKind::kEvaluator || role == v1::ROLE_EVALUATOR);
  if (own) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(method, ": expected a task of the caller's role, found ", v1::Role_Name(role)));
}

template <typename Request>
absl::Status CheckRole(absl::string_view method, CallerKind kind, const Request& request) {
  if constexpr (requires { request.header(); }) {
    return CheckRoleOfTask(method, kind, request.header().task().role());
  }
  return absl::OkStatus();
}

}  // namespace

ChiefGrpcService::ChiefGrpcService(ChiefHandler* handler, const AccessGuard* guard)
    : handler_(handler), calls_(guard) {
  Serve("Register", &ChiefService::Register);
  ServeWaiting("GetModel", &ChiefHandler::BeginGetModel);
  Serve("Heartbeat", &ChiefService::Heartbeat);
  ServeWaiting("AcquireWork", &ChiefHandler::BeginAcquireWork);
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
  answers_ = Thread([this] { handler_->AnswerWaiting(stop_); });
}

ChiefGrpcService::~ChiefGrpcService() {
  stop_.Raise();
  answers_.Join();
}

template <typename Request, typename Response>
void ChiefGrpcService::Serve(absl::string_view method,
                             absl::Status (ChiefService::*handle)(const Request&, Response*)) {
  MarkMethodStreamed(MethodIndex(v1::ChiefService::service_full_name(), method),
                     calls_.Unary<Request, Response>(
                         FullMethodName(v1::ChiefService::service_full_name(), method),
                         [this, name = std::string(method), handle](
                             const Request& request, Response* response, CallerKind kind) {
                           const absl::Status own = CheckRole(name, kind, request);
                           return own.ok() ? (handler_->*handle)(request, response) : own;
                         }));
}

template <typename Request, typename Response>
void ChiefGrpcService::ServeWaiting(
    absl::string_view method,
    ChiefHandler::Cancel (ChiefHandler::*begin)(const Request&,
                                                std::function<void(absl::StatusOr<Response>)>)) {
  using Done = std::function<void(absl::StatusOr<Response>)>;
  const char* const service = v1::ChiefService::service_full_name();
  const auto handler = [&] {
    return WaitingUnary<Request, Response>(
        &calls_, FullMethodName(service, method),
        [this, name = std::string(method), begin](const Request& request, CallerKind kind,
                                                  Done done) -> CancelWait {
          const absl::Status own = CheckRole(name, kind, request);
          if (own.ok()) return std::invoke(begin, handler_, request, std::move(done));
          done(own);
          return nullptr;
        });
  };
  MarkMethodStreamed(MethodIndex(service, method), handler());
  MarkMethodRawCallback(MethodIndex(service, method), handler());
}

absl::Status ChiefGrpcService::EndTrainingOf(const v1::EndTrainingRequest& request,
                                             v1::EndTrainingResponse* response, CallerKind kind) {
  if (kind != CallerKind::kOperator && !request.has_header()) {
    return absl::PermissionDeniedError("EndTraining: expected the header of a member, found none");
  }
  RETURN_IF_ERROR(CheckRole("EndTraining", kind, request));
  return handler_->EndTraining(request, response);
}

}  // namespace keelson
