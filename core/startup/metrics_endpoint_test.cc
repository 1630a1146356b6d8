#include "core/startup/metrics_endpoint.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/http/http_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<HttpServer> StartOrDie(const Telemetry* telemetry) {
  absl::StatusOr<std::unique_ptr<HttpServer>> endpoint = StartMetricsEndpoint(0, telemetry);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

HttpAnswer Request(const HttpServer& endpoint, absl::string_view method, absl::string_view path) {
  const absl::StatusOr<HttpAnswer> response = AskHttp(endpoint.port(), method, path);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.value_or(HttpAnswer());
}

TEST(MetricsEndpoint, ServesMetricsOfThisMoment) {
  Telemetry telemetry;
  int value = 41;
  const auto registration = telemetry.metrics.Add(
      [&](MetricPage* page) { page->Gauge("answer", "The answer.").Add(value); });
  const auto endpoint = StartOrDie(&telemetry);
  EXPECT_THAT(Request(*endpoint, "GET", "/metrics").body, HasSubstr("answer 41\n"));
  value = 42;
  const HttpAnswer response = Request(*endpoint, "GET", "/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.head, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_EQ(response.body, "# HELP answer The answer.\n# TYPE answer gauge\nanswer 42\n");
}

TEST(MetricsEndpoint, LivesAndIsReadyWhenTheTaskSaysSo) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  EXPECT_EQ(Request(*endpoint, "GET", "/healthz").status, 200);
  EXPECT_EQ(Request(*endpoint, "GET", "/readyz").status, 503);
  telemetry.ready = true;
  EXPECT_EQ(Request(*endpoint, "GET", "/readyz").status, 200);
  telemetry.ready = false;
  EXPECT_EQ(Request(*endpoint, "GET", "/readyz").status, 503);
}

TEST(MetricsEndpoint, RefusesOtherPaths) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  EXPECT_EQ(Request(*endpoint, "GET", "/").status, 404);
  EXPECT_EQ(Request(*endpoint, "GET", "/metrics/").status, 404);
  EXPECT_EQ(Request(*endpoint, "GET", "/../etc/passwd").status, 404);
  EXPECT_EQ(Request(*endpoint, "GET", "/metrics?name=a").status, 200);
}

TEST(MetricsEndpoint, NamesItsFlag) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  const absl::Status status = StartMetricsEndpoint(endpoint->port(), &telemetry).status();
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
  EXPECT_EQ(status.message(), absl::StrCat("--metrics_port: cannot listen on port ",
                                           endpoint->port(), ": Address already in use"));
}

}  // namespace
}  // namespace keelson
