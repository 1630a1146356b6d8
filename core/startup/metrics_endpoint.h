// The HTTP endpoint of a task for Prometheus and for Kubernetes' probes.
#ifndef KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_
#define KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/http/message.h"
#include "core/http/server.h"
#include "core/startup/telemetry.h"

namespace keelson {

// GET /metrics   the registry's metrics in Prometheus' text format
// GET /healthz   200 while the process lives
// GET /readyz    200 when Telemetry::ready is set, else 503
// nullopt: another path. Calls the collectors; thread-safe.
std::optional<HttpResponse> AnswerProbe(absl::string_view path, const Telemetry& telemetry);

// Serves these; anything else is answered with 404. The endpoint's thread calls the collectors.
//
// `port` 0: any free one, which is logged. `telemetry` outlives the endpoint. INVALID_ARGUMENT: the
// port is in use, or not allowed.
absl::StatusOr<std::unique_ptr<HttpServer>> StartMetricsEndpoint(int port,
                                                                 const Telemetry* telemetry);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_
