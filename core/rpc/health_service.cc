#include "core/rpc/health_service.h"

#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/time.h"

namespace keelson {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr int kMostWatchers = 32;
constexpr absl::Duration kWatchInterval = absl::Milliseconds(100);

}  // namespace

HealthService::HealthService(const std::atomic<bool>* ready, std::set<std::string> services)
    : ready_(ready), services_(std::move(services)) {}

HealthService::ServingStatus HealthService::StatusOf(const std::string& service) const {
  if (!service.empty() && !services_.contains(service)) return HealthCheckResponse::SERVICE_UNKNOWN;
  const bool serving = *ready_ && !stopped_.raised();
  return serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

grpc::Status HealthService::Check(grpc::ServerContext*, const HealthCheckRequest* request,
                                  HealthCheckResponse* response) {
  const ServingStatus status = StatusOf(request->service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    return {grpc::StatusCode::NOT_FOUND, "no service " + request->service()};
  }
  response->set_status(status);
  return grpc::Status::OK;
}

grpc::Status HealthService::Watch(grpc::ServerContext* context, const HealthCheckRequest* request,
                                  grpc::ServerWriter<HealthCheckResponse>* writer) {
  const absl::Cleanup leave = [this] { --watchers_; };
  if (++watchers_ > kMostWatchers) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watchers"};
  }
  return WatchUntilStopped(context, request->service(), writer);
}

grpc::Status HealthService::WatchUntilStopped(
    grpc::ServerContext* context, const std::string& service,
    grpc::ServerWriter<HealthCheckResponse>* writer) const {
  std::optional<ServingStatus> told;
  while (!context->IsCancelled()) {
    const bool last = stopped_.raised();
    const ServingStatus status = StatusOf(service);
    if (status != told) {
      HealthCheckResponse response;
      response.set_status(status);
      if (!writer->Write(response)) break;
      told = status;
    }
    if (last) return {grpc::StatusCode::UNAVAILABLE, "the task is stopping"};
    stopped_.WaitFor(kWatchInterval);
  }
  return grpc::Status::CANCELLED;
}

}  // namespace keelson
