#include "chief/service/chief_grpc_service.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/rpc/peer_host.h"
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

ChiefGrpcService::ChiefGrpcService(ChiefHandler* handler, const AccessGuard* guard,
                                   AnnouncedHosts* hosts)
    : handler_(handler), hosts_(hosts), calls_(guard) {
  Serve("Register", &ChiefService::Register);
  ServeWaiting("GetModel", &ChiefHandler::BeginGetModel);
  Serve("Heartbeat", &ChiefService::Heartbeat);
  ServeWaiting("AcquireWork", &ChiefHandler::BeginAcquireWork);
  Serve("Admit", &ChiefService::Admit);
  Serve("Leave", &ChiefService::Leave);
  Serve("AcknowledgeEvaluation", &ChiefService::AcknowledgeEvaluation);
  Serve("SetMode", &ChiefService::SetMode);
  Serve("ProposeJob", &ChiefService::ProposeJob);
  Serve("GetJobStatus", &ChiefService::GetJobStatus);
  ServeChange("EndTraining", &ChiefService::EndTraining);
  ServeChange("SaveSnapshot", &ChiefService::SaveSnapshot);
  ServeAnnouncements();
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
ChiefGrpcService::BeginWait<Request, Response> ChiefGrpcService::BeginBy(
    absl::string_view method,
    ChiefHandler::Cancel (ChiefHandler::*begin)(const Request&,
                                                std::function<void(absl::StatusOr<Response>)>)) {
  return [this, name = std::string(method), begin](
             const Request& request, CallerKind kind,
             std::function<void(absl::StatusOr<Response>)> done) -> CancelWait {
    const absl::Status own = CheckRole(name, kind, request);
    if (own.ok()) return std::invoke(begin, handler_, request, std::move(done));
    done(own);
    return nullptr;
  };
}

template <typename Request, typename Response>
void ChiefGrpcService::ServeWaiting(
    absl::string_view method,
    ChiefHandler::Cancel (ChiefHandler::*begin)(const Request&,
                                                std::function<void(absl::StatusOr<Response>)>)) {
  const char* const service = v1::ChiefService::service_full_name();
  const auto handler = [&] {
    return WaitingUnary<Request, Response>(&calls_, FullMethodName(service, method),
                                           BeginBy(method, begin));
  };
  MarkMethodStreamed(MethodIndex(service, method), handler());
  MarkMethodRawCallback(MethodIndex(service, method), handler());
}

std::vector<ByteMethod> ChiefGrpcService::ByteMethods() {
  constexpr absl::string_view kMethod = "AcquireWork";
  return {ByteMethodOf<v1::AcquireWorkRequest, v1::AcquireWorkResponse>(
      FullMethodName(v1::ChiefService::service_full_name(), kMethod),
      BeginBy(kMethod, &ChiefHandler::BeginAcquireWork))};
}

// The handler does not know where a call comes from.
void ChiefGrpcService::ServeAnnouncements() {
  const char* const service = v1::ChiefService::service_full_name();
  const std::string method = FullMethodName(service, "AnnounceHost");
  MarkMethodStreamed(
      MethodIndex(service, "AnnounceHost"),
      GuardedCalls::Handler([this, method](grpc::ServerContext* context,
                                           ByteCall* call) -> absl::Status {
        ASSIGN_OR_RETURN(const CallerKind kind, calls_.Admit(method, *context));
        v1::AnnounceHostRequest request;
        RETURN_IF_ERROR(calls_.ReadOnly(method, kind, context, call, &request));
        RETURN_IF_ERROR(CheckRole("AnnounceHost", kind, request));
        v1::AnnounceHostResponse response;
        RETURN_IF_ERROR(hosts_ == nullptr
                            ? handler_->AnnounceHost(request, &response)
                            : hosts_->Announce(request, HostOfPeer(context->peer()), &response));
        GuardedCalls::Write(response, call);
        return absl::OkStatus();
      }));
}

template <typename Request, typename Response>
void ChiefGrpcService::ServeChange(absl::string_view method,
                                   absl::Status (ChiefService::*handle)(const Request&,
                                                                        Response*)) {
  const char* const service = v1::ChiefService::service_full_name();
  MarkMethodStreamed(MethodIndex(service, method),
                     calls_.Unary<Request, Response>(
                         FullMethodName(service, method),
                         [this, name = std::string(method), handle](
                             const Request& request, Response* response, CallerKind kind) {
                           if (kind != CallerKind::kOperator && !request.has_header()) {
                             return absl::PermissionDeniedError(absl::StrCat(
                                 name, ": expected the header of a member, found none"));
                           }
                           const absl::Status own = CheckRole(name, kind, request);
                           return own.ok() ? (handler_->*handle)(request, response) : own;
                         }));
}

}  // namespace keelson
