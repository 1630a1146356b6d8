#include "core/rpc/health_service.h"

#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int kMostWatchers = 32;
constexpr absl::Duration kWatchInterval = absl::Milliseconds(100);

}  // namespace

HealthService::HealthService(const std::atomic<bool>* ready, std::set<std::string> services)
    : ready_(ready), services_(std::move(services)) {
  const char* const service = grpc::health::v1::Health::service_full_name();
  MarkMethodStreamed(MethodIndex(service, "Check"),
                     calls_.Unary<HealthCheckRequest, HealthCheckResponse>(
                         FullMethodName(service, "Check"),
                         [this](const auto& request, auto* response, CallerKind) {
                           return AnswerCheck(request, response);
                         }));
  MarkMethodStreamed(MethodIndex(service, "Watch"),
                     GuardedCalls::Handler([this](auto* context, ByteCall* call) {
                       return ServeWatch(context, call);
                     }));
}

HealthService::ServingStatus HealthService::StatusOf(const std::string& service) const {
  if (!service.empty() && !services_.contains(service)) return HealthCheckResponse::SERVICE_UNKNOWN;
  const bool serving = *ready_ && !stopped_.raised();
  return serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

absl::Status HealthService::AnswerCheck(const HealthCheckRequest& request,
                                        HealthCheckResponse* response) const {
  const ServingStatus status = StatusOf(request.service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    return absl::NotFoundError("no service " + request.service());
  }
  response->set_status(status);
  return absl::OkStatus();
}

absl::Status HealthService::ServeWatch(grpc::ServerContext* context, ByteCall* call) {
  HealthCheckRequest request;
  RETURN_IF_ERROR(
      calls_.ReadOnly(FullMethodName(grpc::health::v1::Health::service_full_name(), "Watch"),
                      CallerKind::kStranger, context, call, &request));
  const absl::Cleanup leave = [this] { --watchers_; };
  if (++watchers_ > kMostWatchers) return absl::ResourceExhaustedError("too many watchers");
  return WatchUntilStopped(*context, request.service(), call);
}

absl::Status HealthService::WatchUntilStopped(const grpc::ServerContext& context,
                                              const std::string& service, ByteCall* call) const {
  std::optional<ServingStatus> told;
  while (!context.IsCancelled()) {
    const bool last = stopped_.raised();
    const ServingStatus status = StatusOf(service);
    if (status != told) {
      HealthCheckResponse response;
      response.set_status(status);
      if (!GuardedCalls::Write(response, call)) break;
      told = status;
    }
    if (last) return absl::UnavailableError("the task is stopping");
    stopped_.WaitFor(kWatchInterval);
  }
  return absl::CancelledError("the caller is gone");
}

}  // namespace keelson
