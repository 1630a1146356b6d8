#include "core/startup/health.h"

#include <utility>

#include "absl/status/statusor.h"
#include "core/base/log.h"

namespace keelson {

std::unique_ptr<HealthEndpoint> StartHealthEndpoint(const RoleContext& context) {
  const ClusterSpec& cluster = context.cluster;
  // The default port may be another task's.
  if (cluster.listen_port == 0 && !cluster.SelfAddress().has_value()) return nullptr;
  absl::StatusOr<std::unique_ptr<HealthEndpoint>> endpoint =
      HealthEndpoint::Start(cluster.ListenAddress(), &context.telemetry->ready);
  if (!endpoint.ok()) {
    LogWarning("going on without gRPC's health service: ", endpoint.status().message());
    return nullptr;
  }
  LogInfo("health service on port ", (*endpoint)->port());
  return *std::move(endpoint);
}

}  // namespace keelson
