// The HTTP endpoint of a task for Prometheus and for Kubernetes' probes.
#ifndef KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_
#define KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

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

struct MetricsEndpointOptions {
  int port = 0;                    // 0: any free one, which is logged
  std::string address;             // numeric, to listen on; empty: all of the host's
  std::vector<std::string> hosts;  // HttpServer::Options::hosts
};

// Serves these; anything else is answered with 404. The endpoint's thread calls the collectors.
// `telemetry` outlives the endpoint. Errors of HttpServer::Start.
absl::StatusOr<std::unique_ptr<HttpServer>> StartMetricsEndpoint(
    const MetricsEndpointOptions& options, const Telemetry* telemetry);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_
