#include "core/startup/metrics_endpoint.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/exit_code.h"
#include "core/http/http_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<HttpServer> StartOrDie(const Telemetry* telemetry,
                                       const MetricsEndpointOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<HttpServer>> endpoint = StartMetricsEndpoint(options, telemetry);
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

TEST(MetricsEndpoint, ListensOnTheAddressThatItIsGiven) {
  const Telemetry telemetry;
  MetricsEndpointOptions options;
  options.address = "127.0.0.2";
  const auto other = StartOrDie(&telemetry, options);
  EXPECT_TRUE(absl::IsUnavailable(AskHttp(other->port(), "GET", "/healthz").status()));
  options.address = "127.0.0.1";
  EXPECT_EQ(Request(*StartOrDie(&telemetry, options), "GET", "/healthz").status, 200);
  options.address = "here";
  EXPECT_EQ(StartMetricsEndpoint(options, &telemetry).status(),
            absl::InvalidArgumentError(
                "--metrics_address: expected an address such as 127.0.0.1 or ::, found here"));
}

TEST(MetricsEndpoint, RefusesWhatIsMeantForOtherHosts) {
  const Telemetry telemetry;
  MetricsEndpointOptions options;
  options.hosts = {"metrics.example"};
  const auto endpoint = StartOrDie(&telemetry, options);
  const auto answer_for = [&](const std::string& host) {
    const absl::StatusOr<HttpConnection> client = HttpConnection::To(endpoint->port());
    EXPECT_TRUE(client.ok()) << client.status();
    client->Send(absl::StrCat("GET /metrics HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
    return ParseHttpAnswer(client->ReceiveAll()).value_or(HttpAnswer());
  };
  EXPECT_EQ(answer_for("10.0.0.7:9090").status, 200);
  EXPECT_EQ(answer_for("metrics.example:9090").status, 200);
  EXPECT_EQ(answer_for("evil.example:9090").status, 403);
  EXPECT_THAT(answer_for("evil.example:9090").body, HasSubstr("--metrics_hosts"));
}

TEST(MetricsEndpoint, AnswersWhileFiftyRequestsDoNotEnd) {
  const Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  std::vector<HttpConnection> trickling;
  for (int i = 0; i < 50; ++i) {
    // Half of them are of one client.
    const int client = std::max(i - 24, 1);
    auto connection = HttpConnection::From(absl::StrCat("127.0.1.", client), endpoint->port());
    ASSERT_TRUE(connection.ok()) << connection.status();
    connection->Send("GET /metr");
    trickling.push_back(*std::move(connection));
  }
  for (const char* target : {"/metrics", "/healthz", "/metrics"}) {
    for (const HttpConnection& connection : trickling) connection.Send("i");
    const absl::Time before = absl::Now();
    EXPECT_EQ(Request(*endpoint, "GET", target).status, 200);
    // One after another they would hold it up for a second each.
    EXPECT_LT(absl::Now() - before, absl::Seconds(10));
  }
}

TEST(MetricsEndpoint, NamesItsFlag) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  MetricsEndpointOptions taken;
  taken.port = endpoint->port();
  const absl::Status status = StartMetricsEndpoint(taken, &telemetry).status();
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
  EXPECT_EQ(status.message(), absl::StrCat("--metrics_port: cannot listen on port ",
                                           endpoint->port(), ": Address already in use"));
}

}  // namespace
}  // namespace keelson
