#include "core/startup/metrics_endpoint.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/stop_signal.h"
#include "core/startup/http_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<MetricsEndpoint> StartOrDie(const Telemetry* telemetry,
                                            MetricsEndpoint::Options options = {}) {
  absl::StatusOr<std::unique_ptr<MetricsEndpoint>> endpoint =
      MetricsEndpoint::Start(options, telemetry);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

HttpResponse Request(const MetricsEndpoint& endpoint, absl::string_view method,
                     absl::string_view path) {
  const absl::StatusOr<HttpResponse> response = HttpRequest(endpoint.port(), method, path);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.value_or(HttpResponse());
}

std::string Exchange(const MetricsEndpoint& endpoint, absl::string_view bytes) {
  const absl::StatusOr<HttpConnection> connection = HttpConnection::To(endpoint.port());
  EXPECT_TRUE(connection.ok()) << connection.status();
  connection->Send(bytes);
  return connection->ReceiveAll();
}

int CountEntries(const char* path) {
  DIR* const directory = opendir(path);
  int entries = 0;
  while (readdir(directory) != nullptr) ++entries;
  closedir(directory);
  return entries;
}

TEST(MetricsEndpoint, ServesMetricsOfThisMoment) {
  Telemetry telemetry;
  int value = 41;
  const auto registration = telemetry.metrics.Add(
      [&](MetricPage* page) { page->Gauge("answer", "The answer.").Add(value); });
  const auto endpoint = StartOrDie(&telemetry);
  EXPECT_THAT(Request(*endpoint, "GET", "/metrics").body, HasSubstr("answer 41\n"));
  value = 42;
  const HttpResponse response = Request(*endpoint, "GET", "/metrics");
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

TEST(MetricsEndpoint, RefusesOtherPathsAndMethods) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  EXPECT_EQ(Request(*endpoint, "GET", "/").status, 404);
  EXPECT_EQ(Request(*endpoint, "GET", "/metrics/").status, 404);
  EXPECT_EQ(Request(*endpoint, "GET", "/../etc/passwd").status, 404);
  EXPECT_EQ(Request(*endpoint, "GET", "/metrics?name=a").status, 200);
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS"}) {
    const HttpResponse response = Request(*endpoint, method, "/metrics");
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_THAT(response.head, HasSubstr("Allow: GET"));
  }
}

TEST(MetricsEndpoint, SurvivesWhatIsNoRequest) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  EXPECT_THAT(Exchange(*endpoint, "hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Exchange(*endpoint, "GET /metrics\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(
      Exchange(*endpoint, absl::StrCat("GET /", std::string(9000, 'a'), " HTTP/1.1\r\n\r\n")),
      StartsWith("HTTP/1.1 414"));
  EXPECT_EQ(Request(*endpoint, "GET", "/healthz").status, 200);
}

TEST(MetricsEndpoint, BoundsTheSizeOfARequest) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  std::string request = "GET /healthz HTTP/1.1\r\n";
  // Exactly as much as is read, so that the answer is not lost to a reset of the connection.
  while (request.size() < 16 * 1024) request += "X-Padding: aaaaaaaaaaaaaaaaaaaa\r\n";
  request.resize(16 * 1024);
  EXPECT_THAT(Exchange(*endpoint, request), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(Request(*endpoint, "GET", "/healthz").status, 200);
}

TEST(MetricsEndpoint, CutsOffASilentClient) {
  Telemetry telemetry;
  MetricsEndpoint::Options options;
  options.connection_timeout = absl::Milliseconds(50);
  const auto endpoint = StartOrDie(&telemetry, options);
  EXPECT_EQ(Exchange(*endpoint, ""), "");
  EXPECT_EQ(Request(*endpoint, "GET", "/healthz").status, 200);
}

TEST(MetricsEndpoint, EndsWhileAClientIsSilent) {
  Telemetry telemetry;
  MetricsEndpoint::Options options;
  options.connection_timeout = absl::Hours(1);
  auto endpoint = StartOrDie(&telemetry, options);
  const absl::StatusOr<HttpConnection> silent = HttpConnection::To(endpoint->port());
  ASSERT_TRUE(silent.ok());
  silent->Send("GET /met");
  const absl::StatusOr<HttpConnection> waiting = HttpConnection::To(endpoint->port());
  endpoint.reset();
  EXPECT_EQ(silent->ReceiveAll(), "");
}

TEST(MetricsEndpoint, ServesManyClients) {
  Telemetry telemetry;
  const auto registration =
      telemetry.metrics.Add([](MetricPage* page) { page->Gauge("g", "One.").Add(1); });
  const auto endpoint = StartOrDie(&telemetry);
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        EXPECT_THAT(Request(*endpoint, "GET", "/metrics").body, HasSubstr("g 1\n"));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(MetricsEndpoint, ClientsCostNoThreads) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  EXPECT_EQ(Request(*endpoint, "GET", "/metrics").status, 200);
  const int threads = CountEntries("/proc/self/task");
  {
    std::vector<HttpConnection> idle;
    for (int i = 0; i < 3; ++i) idle.push_back(*HttpConnection::To(endpoint->port()));
    EXPECT_LE(CountEntries("/proc/self/task"), threads);
  }
  EXPECT_EQ(Request(*endpoint, "GET", "/metrics").status, 200);
  EXPECT_LE(CountEntries("/proc/self/task"), threads);
}

TEST(MetricsEndpoint, LeavesNoFilesBehind) {
  Telemetry telemetry;
  StartOrDie(&telemetry);
  const int files = CountEntries("/proc/self/fd");
  EXPECT_EQ(Request(*StartOrDie(&telemetry), "GET", "/metrics").status, 200);
  EXPECT_EQ(CountEntries("/proc/self/fd"), files);
}

TEST(MetricsEndpoint, NamesThePortThatIsInUse) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  MetricsEndpoint::Options options;
  options.port = endpoint->port();
  const absl::Status status = MetricsEndpoint::Start(options, &telemetry).status();
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
  EXPECT_EQ(status.message(), absl::StrCat("--metrics_port: cannot listen on port ",
                                           endpoint->port(), ": Address already in use"));
}

TEST(MetricsEndpoint, AServerOfTheSamePortOnIpv4IsInUseToo) {
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(other, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(other, 1), 0);
  getsockname(other, reinterpret_cast<sockaddr*>(&address), &size);
  Telemetry telemetry;
  MetricsEndpoint::Options options;
  options.port = ntohs(address.sin_port);
  EXPECT_FALSE(MetricsEndpoint::Start(options, &telemetry).ok());
  close(other);
}

TEST(MetricsEndpoint, SignalsGoToTheirWatcher) {
  Telemetry telemetry;
  const auto endpoint = StartOrDie(&telemetry);
  StopSignal stop;
  SignalWatcher watcher(&stop);
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(stop.WaitFor(absl::Seconds(20)));
}

}  // namespace
}  // namespace keelson
