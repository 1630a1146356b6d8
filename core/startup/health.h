// gRPC's health service of a task that serves nothing else over gRPC: a worker, an evaluator.
#ifndef KEELSON_CORE_STARTUP_HEALTH_H_
#define KEELSON_CORE_STARTUP_HEALTH_H_

#include <memory>

#include "core/rpc/health_endpoint.h"
#include "core/startup/role_program.h"

namespace keelson {

// Serves it at ClusterSpec::ListenAddress, SERVING while Telemetry::ready is set. Null: the task
// has no address of its own and no --port; or the address cannot be used, which is logged as a
// warning and does not prevent training. `context` outlives the endpoint.
std::unique_ptr<HealthEndpoint> StartHealthEndpoint(const RoleContext& context);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_HEALTH_H_
