#include "core/startup/metrics_endpoint.h"

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/metrics/text_format.h"

namespace keelson {
namespace {

HttpAnswer Answer(const Telemetry& telemetry, absl::string_view path) {
  if (path == "/metrics") {
    return {200, kTextFormatContentType, FormatAsText(telemetry.metrics.Collect()), {}};
  }
  if (path == "/healthz") return {200, kPlainText, "alive\n", {}};
  if (path == "/readyz") {
    const bool ready = telemetry.ready;
    return {ready ? 200 : 503, kPlainText, ready ? "ready\n" : "not ready\n", {}};
  }
  return {404, kPlainText, "not found; try /metrics, /healthz or /readyz\n", {}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoint>> StartMetricsEndpoint(int port,
                                                                   const Telemetry* telemetry) {
  HttpEndpoint::Options options;
  options.flag = "--metrics_port";
  options.port = port;
  ASSIGN_OR_RETURN(std::unique_ptr<HttpEndpoint> endpoint,
                   HttpEndpoint::Start(options, [telemetry](absl::string_view path) {
                     return Answer(*telemetry, path);
                   }));
  LogInfo("metrics on port ", endpoint->port());
  return endpoint;
}

}  // namespace keelson
