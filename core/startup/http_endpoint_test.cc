#include "core/startup/http_endpoint.h"

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

HttpAnswer Echo(absl::string_view path) {
  if (path == "/lost") return {404, kPlainText, "not here\n", {}};
  return {200, "text/x-path", absl::StrCat("path=", path, "\n"), {{"X-Extra", "more"}}};
}

HttpEndpoint::Options PortFlag() {
  HttpEndpoint::Options options;
  options.flag = "--port_flag";
  return options;
}

std::unique_ptr<HttpEndpoint> StartOrDie(const HttpEndpoint::Options& options = PortFlag()) {
  absl::StatusOr<std::unique_ptr<HttpEndpoint>> endpoint = HttpEndpoint::Start(options, Echo);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

HttpResponse Request(const HttpEndpoint& endpoint, absl::string_view method,
                     absl::string_view path) {
  const absl::StatusOr<HttpResponse> response = HttpRequest(endpoint.port(), method, path);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.value_or(HttpResponse());
}

std::string Exchange(const HttpEndpoint& endpoint, absl::string_view bytes) {
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

TEST(HttpEndpoint, GivesTheHandlersAnswer) {
  const auto endpoint = StartOrDie();
  const HttpResponse response = Request(*endpoint, "GET", "/a%20page?name=a");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.head, HasSubstr("Content-Type: text/x-path"));
  EXPECT_THAT(response.head, HasSubstr("X-Extra: more"));
  EXPECT_EQ(response.body, "path=/a page\n");
  EXPECT_EQ(Request(*endpoint, "GET", "/lost").status, 404);
}

TEST(HttpEndpoint, AnswersHeadWithoutTheBody) {
  const auto endpoint = StartOrDie();
  const HttpResponse response = Request(*endpoint, "HEAD", "/page");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.head, HasSubstr("Content-Length: 11"));
  EXPECT_EQ(response.body, "");
}

TEST(HttpEndpoint, RefusesOtherMethods) {
  const auto endpoint = StartOrDie();
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const HttpResponse response = Request(*endpoint, method, "/page");
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_THAT(response.head, HasSubstr("Allow: GET, HEAD"));
    EXPECT_EQ(response.body, "");
  }
}

TEST(HttpEndpoint, SurvivesWhatIsNoRequest) {
  const auto endpoint = StartOrDie();
  EXPECT_THAT(Exchange(*endpoint, "hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Exchange(*endpoint, "GET /page\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(
      Exchange(*endpoint, absl::StrCat("GET /", std::string(9000, 'a'), " HTTP/1.1\r\n\r\n")),
      StartsWith("HTTP/1.1 414"));
  EXPECT_EQ(Request(*endpoint, "GET", "/page").status, 200);
}

TEST(HttpEndpoint, BoundsTheSizeOfARequest) {
  const auto endpoint = StartOrDie();
  std::string request = "GET /page HTTP/1.1\r\n";
  // Exactly as much as is read, so that the answer is not lost to a reset of the connection.
  while (request.size() < 16 * 1024) request += "X-Padding: aaaaaaaaaaaaaaaaaaaa\r\n";
  request.resize(16 * 1024);
  EXPECT_THAT(Exchange(*endpoint, request), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(Request(*endpoint, "GET", "/page").status, 200);
}

TEST(HttpEndpoint, CutsOffASilentClient) {
  HttpEndpoint::Options options = PortFlag();
  options.connection_timeout = absl::Milliseconds(50);
  const auto endpoint = StartOrDie(options);
  EXPECT_EQ(Exchange(*endpoint, ""), "");
  EXPECT_EQ(Request(*endpoint, "GET", "/page").status, 200);
}

TEST(HttpEndpoint, EndsWhileAClientIsSilent) {
  HttpEndpoint::Options options = PortFlag();
  options.connection_timeout = absl::Hours(1);
  auto endpoint = StartOrDie(options);
  const absl::StatusOr<HttpConnection> silent = HttpConnection::To(endpoint->port());
  ASSERT_TRUE(silent.ok());
  silent->Send("GET /pa");
  const absl::StatusOr<HttpConnection> waiting = HttpConnection::To(endpoint->port());
  endpoint.reset();
  EXPECT_EQ(silent->ReceiveAll(), "");
}

TEST(HttpEndpoint, ServesManyClients) {
  const auto endpoint = StartOrDie();
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        EXPECT_THAT(Request(*endpoint, "GET", "/page").body, HasSubstr("path=/page\n"));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(HttpEndpoint, ClientsCostNoThreads) {
  const auto endpoint = StartOrDie();
  EXPECT_EQ(Request(*endpoint, "GET", "/page").status, 200);
  const int threads = CountEntries("/proc/self/task");
  {
    std::vector<HttpConnection> idle;
    for (int i = 0; i < 3; ++i) idle.push_back(*HttpConnection::To(endpoint->port()));
    EXPECT_LE(CountEntries("/proc/self/task"), threads);
  }
  EXPECT_EQ(Request(*endpoint, "GET", "/page").status, 200);
  EXPECT_LE(CountEntries("/proc/self/task"), threads);
}

TEST(HttpEndpoint, LeavesNoFilesBehind) {
  StartOrDie();
  const int files = CountEntries("/proc/self/fd");
  EXPECT_EQ(Request(*StartOrDie(), "GET", "/page").status, 200);
  EXPECT_EQ(CountEntries("/proc/self/fd"), files);
}

TEST(HttpEndpoint, NamesThePortThatIsInUse) {
  const auto endpoint = StartOrDie();
  HttpEndpoint::Options options = PortFlag();
  options.port = endpoint->port();
  const absl::Status status = HttpEndpoint::Start(options, Echo).status();
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
  EXPECT_EQ(status.message(), absl::StrCat("--port_flag: cannot listen on port ", endpoint->port(),
                                           ": Address already in use"));
}

TEST(HttpEndpoint, AServerOfTheSamePortOnIpv4IsInUseToo) {
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(other, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(other, 1), 0);
  getsockname(other, reinterpret_cast<sockaddr*>(&address), &size);
  HttpEndpoint::Options options = PortFlag();
  options.port = ntohs(address.sin_port);
  EXPECT_FALSE(HttpEndpoint::Start(options, Echo).ok());
  close(other);
}

TEST(HttpEndpoint, SignalsGoToTheirWatcher) {
  const auto endpoint = StartOrDie();
  StopSignal stop;
  SignalWatcher watcher(&stop);
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(stop.WaitFor(absl::Seconds(20)));
}

}  // namespace
}  // namespace keelson
