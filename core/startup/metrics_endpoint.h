// The HTTP endpoint of a task for Prometheus and for Kubernetes' probes.
#ifndef KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_
#define KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/startup/http_endpoint.h"
#include "core/startup/telemetry.h"

namespace keelson {

// GET /metrics   the registry's metrics in Prometheus' text format
// GET /healthz   200 while the process lives
// GET /readyz    200 when Telemetry::ready is set, else 503
// Anything else is answered with 404. The endpoint's thread calls the collectors.
//
// `port` 0: any free one, which is logged. `telemetry` outlives the endpoint. INVALID_ARGUMENT: the
// port is in use, or not allowed.
absl::StatusOr<std::unique_ptr<HttpEndpoint>> StartMetricsEndpoint(int port,
                                                                   const Telemetry* telemetry);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_
