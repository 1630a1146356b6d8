#include "core/http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/stop_signal.h"
#include "core/http/server_testing.h"

namespace keelson {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HttpServer, GivesTheHandlersAnswer) {
  const auto server = StartOrDie();
  const HttpAnswer answer = Ask(*server, "GET", "/a%20page?name=a");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("Content-Type: text/x-echo"));
  EXPECT_EQ(answer.body, "path=/a page body= client=127.0.0.1\n");
}

TEST(HttpServer, TakesBodiesWhereTheyAreAllowed) {
  HttpServer::Options options = PortFlag();
  options.max_body_bytes = 1000;
  const auto server = StartOrDie(options);
  EXPECT_EQ(Ask(*server, "POST", "/", "", "{}").body, "path=/ body={} client=127.0.0.1\n");
  EXPECT_EQ(Ask(*StartOrDie(), "POST", "/", "", "{}").status, 405);
}

TEST(HttpServer, AClientGetsTheRefusalOfWhatItStillSends) {
  HttpServer::Options options = PortFlag();
  options.max_body_bytes = 1000;
  options.connection_timeout = absl::Seconds(20);
  const auto server = StartOrDie(options);
  const HttpAnswer answer = Ask(*server, "POST", "/", "", std::string(3'000'000, 'a'));
  EXPECT_EQ(answer.status, 413);
  EXPECT_THAT(answer.body, HasSubstr("too long"));
}

TEST(HttpServer, ServesSeveralAtATime) {
  HttpServer::Options options = PortFlag();
  options.threads = 2;
  options.connection_timeout = absl::Hours(1);
  options.head_timeout = absl::Hours(1);
  const auto server = StartOrDie(options);
  const HttpConnection silent = ConnectOrDie(*server);
  silent.Send("GET /pa");
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  silent.Send("ge HTTP/1.1\r\n\r\n");
  EXPECT_THAT(silent.ReceiveAll(), HasSubstr("path=/page"));
}

TEST(HttpServer, ServesManyClients) {
  HttpServer::Options options = PortFlag();
  options.threads = 3;
  const auto server = StartOrDie(options);
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        EXPECT_THAT(Ask(*server, "GET", "/page").body, StartsWith("path=/page "));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(HttpServer, BoundsTheRateOfAClient) {
  ManualClock clock;
  HttpServer::Options options = PortFlag();
  options.requests_per_second = 1;
  options.clock = &clock;
  const auto server = StartOrDie(options);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask(*server, "GET", "/").status, 200);
  const HttpAnswer refused = Ask(*server, "GET", "/");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After: 1"));
  EXPECT_THAT(refused.body, StartsWith("{\"error\": "));
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(Ask(*server, "GET", "/").status, 200);
  EXPECT_EQ(Ask(*server, "GET", "/").status, 429);
}

TEST(HttpServer, RequestsThatDoNotEndCountToo) {
  ManualClock clock;
  HttpServer::Options options = PortFlag();
  options.requests_per_second = 1;
  options.clock = &clock;
  const auto server = StartOrDie(options);
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Exchanged(*server, "GET /\n"), HasSubstr(" 400 "));
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 429);
  // The refusal does not wait for the request's end.
  const HttpConnection half = ConnectOrDie(*server);
  half.Send("GET /pa");
  EXPECT_THAT(half.ReceiveUntil("}\n"), StartsWith("HTTP/1.1 429"));
}

TEST(HttpServer, ClientsCostNoThreads) {
  const auto server = StartOrDie();
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  const int threads = CountEntries("/proc/self/task");
  {
    std::vector<HttpConnection> idle;
    for (int i = 0; i < 3; ++i) idle.push_back(ConnectOrDie(*server));
    EXPECT_LE(CountEntries("/proc/self/task"), threads);
  }
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  EXPECT_LE(CountEntries("/proc/self/task"), threads);
}

TEST(HttpServer, NamesThePortThatIsInUse) {
  const auto server = StartOrDie();
  HttpServer::Options options = PortFlag();
  options.port = server->port();
  const absl::Status status = HttpServer::Start(options, Echo).status();
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
  EXPECT_EQ(status.message(), absl::StrCat("--port_flag: cannot listen on port ", server->port(),
                                           ": Address already in use"));
}

TEST(HttpServer, AServerOfTheSamePortOnIpv4IsInUseToo) {
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(other, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(other, 1), 0);
  getsockname(other, reinterpret_cast<sockaddr*>(&address), &size);
  HttpServer::Options options = PortFlag();
  options.port = ntohs(address.sin_port);
  EXPECT_FALSE(HttpServer::Start(options, Echo).ok());
  close(other);
}

HttpServer::Options At(const std::string& address) {
  HttpServer::Options options = PortFlag();
  options.address_flag = "--address_flag";
  options.address = address;
  return options;
}

TEST(HttpServer, ListensOnOneAddressAlone) {
  const auto other = StartOrDie(At("127.0.0.2"));
  EXPECT_TRUE(absl::IsUnavailable(HttpConnection::To(other->port()).status()));
  EXPECT_EQ(Ask(*StartOrDie(At("127.0.0.1")), "GET", "/page").status, 200);
  EXPECT_EQ(Ask(*StartOrDie(At("0.0.0.0")), "GET", "/page").status, 200);
}

TEST(HttpServer, SaysWhatIsWrongWithAnAddress) {
  for (const char* address : {"localhost", "127.0.0.1:80", "[::1]", "127.1"}) {
    const absl::Status status = HttpServer::Start(At(address), Echo).status();
    EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
    EXPECT_EQ(status.message(),
              absl::StrCat("--address_flag: expected an address such as 127.0.0.1 or ::, found ",
                           address));
  }
  // An address of the range for documentation, which no host has.
  const absl::Status status = HttpServer::Start(At("192.0.2.1"), Echo).status();
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
  EXPECT_EQ(status.message(),
            "--port_flag: cannot listen on 192.0.2.1, port 0: Cannot assign requested address");
}

std::string AskAsHost(const HttpServer& server, const char* host) {
  return Exchanged(server, absl::StrCat("GET /page HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
}

TEST(HttpServer, RefusesWhatIsMeantForOthers) {
  for (const char* address : {"", "0.0.0.0", "127.0.0.1"}) {
    HttpServer::Options options = At(address);
    options.hosts_flag = "--hosts_flag";
    options.hosts = {"dashboard.example"};
    const auto server = StartOrDie(options);
    EXPECT_THAT(AskAsHost(*server, "localhost:6006"), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(AskAsHost(*server, "Dashboard.example"), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(Exchanged(*server, "GET /page HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200"));
    const std::string refused = AskAsHost(*server, "evil.example:6006");
    EXPECT_THAT(refused, StartsWith("HTTP/1.1 403"));
    EXPECT_THAT(refused,
                EndsWith("{\"error\": \"Host: expected localhost, a numeric address, this host's "
                         "name or one of --hosts_flag, found evil.example:6006\"}\n"));
  }
}

TEST(HttpServer, SaysWhatIsWrongWithAHost) {
  HttpServer::Options options = PortFlag();
  options.hosts_flag = "--hosts_flag";
  options.hosts = {"http://dashboard.example"};
  const absl::Status status = HttpServer::Start(options, Echo).status();
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
  EXPECT_THAT(std::string(status.message()), StartsWith("--hosts_flag: expected a host's name"));
}

TEST(HttpServer, SignalsGoToTheirWatcher) {
  const auto server = StartOrDie();
  StopSignal stop;
  SignalWatcher watcher(&stop);
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(stop.WaitFor(absl::Seconds(20)));
}

}  // namespace
}  // namespace keelson
