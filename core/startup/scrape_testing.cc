#include "core/startup/scrape_testing.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "core/base/status_macros.h"
#include "core/http/http_testing.h"
#include "core/metrics/text_format.h"
#include "core/startup/metrics_endpoint.h"

namespace keelson {

absl::StatusOr<Exposition> Scrape(const Telemetry& telemetry) {
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> endpoint,
                   StartMetricsEndpoint({}, &telemetry));
  ASSIGN_OR_RETURN(const HttpAnswer answer, AskHttp(endpoint->port(), "GET", "/metrics"));
  if (answer.status != 200 || !absl::StrContains(answer.head, kTextFormatContentType)) {
    return absl::InternalError(answer.head);
  }
  return ParseExposition(answer.body);
}

}  // namespace keelson
