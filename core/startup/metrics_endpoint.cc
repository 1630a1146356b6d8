#include "core/startup/metrics_endpoint.h"

#include <utility>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/metrics/text_format.h"

namespace keelson {
namespace {

HttpResponse Text(int status, const char* content_type, std::string body) {
  HttpResponse response;
  response.status = status;
  response.content_type = content_type;
  response.body = std::move(body);
  return response;
}

}  // namespace

std::optional<HttpResponse> AnswerProbe(absl::string_view path, const Telemetry& telemetry) {
  if (path == "/metrics") {
    return Text(200, kTextFormatContentType, FormatAsText(telemetry.metrics.Collect()));
  }
  if (path == "/healthz") return Text(200, kPlainText, "alive\n");
  if (path == "/readyz") {
    const bool ready = telemetry.ready;
    return Text(ready ? 200 : 503, kPlainText, ready ? "ready\n" : "not ready\n");
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<HttpServer>> StartMetricsEndpoint(
    const MetricsEndpointOptions& options, const Telemetry* telemetry) {
  HttpServer::Options server;
  server.flag = "--metrics_port";
  server.port = options.port;
  server.address_flag = "--metrics_address";
  server.address = options.address;
  server.hosts_flag = "--metrics_hosts";
  server.hosts = options.hosts;
  ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> endpoint,
      HttpServer::Start(server, [telemetry](const HttpRequest& request) {
        return AnswerProbe(request.path, *telemetry)
            .value_or(Text(404, kPlainText, "not found; try /metrics, /healthz or /readyz\n"));
      }));
  LogInfo("metrics on port ", endpoint->port());
  return endpoint;
}

}  // namespace keelson
