// Clients that are silent, slow or too many: they hold nobody up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/http/server_testing.h"
#include "core/http/waiting_room.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What the client receives while the clock goes on and it sends `bytes` now and then.
std::string ReceivedWhileTimePasses(const HttpConnection& client, ManualClock* clock,
                                    absl::string_view bytes = "") {
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!client.HasNews() && absl::Now() < limit) {
    client.Send(bytes);
    clock->Advance(absl::Milliseconds(100));
  }
  return client.ReceiveAll();
}
TEST(HttpServer, CutsOffASilentClient) {
  ManualClock clock;
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Seconds(10);
  options.clock = &clock;
  const auto server = StartOrDie(options);
  const HttpConnection silent = ConnectOrDie(*server);
  EXPECT_EQ(ReceivedWhileTimePasses(silent, &clock), "");
  EXPECT_FALSE(silent.open());
  const HttpConnection half = ConnectOrDie(*server);
  half.Send("GET / HTTP/1.1\r\nX-Half: ");
  EXPECT_THAT(ReceivedWhileTimePasses(half, &clock), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
}

TEST(HttpServer, CutsOffAClientThatSendsAByteNowAndThen) {
  ManualClock clock;
  HttpServer::Options options = PortFlag();
  options.clock = &clock;
  const auto server = StartOrDie(options);
  const HttpConnection slow = ConnectOrDie(*server);
  EXPECT_THAT(ReceivedWhileTimePasses(slow, &clock, "G"), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
}

// Requests that have begun and do not end.
std::vector<HttpConnection> Trickling(const HttpServer& server, int count) {
  std::vector<HttpConnection> trickling;
  for (int i = 0; i < count; ++i) {
    // Some of one client, the others of one each.
    const int client = std::max(i - 9, 1);
    auto connection = HttpConnection::From(absl::StrCat("127.0.1.", client), server.port());
    EXPECT_TRUE(connection.ok()) << connection.status();
    connection->Send(i % 2 == 0 ? "GET /page HTTP/1.1\r\nX-Half: "
                                : "POST / HTTP/1.1\r\nContent-Length: 900\r\n\r\nhalf");
    trickling.push_back(*std::move(connection));
  }
  return trickling;
}

TEST(HttpServer, FiftyTricklingClientsHoldNobodyUp) {
  HttpServer::Options options = PortFlag();
  options.max_body_bytes = 1000;
  options.connection_timeout = absl::Hours(1);
  options.head_timeout = absl::Hours(1);
  const auto server = StartOrDie(options);
  const std::vector<HttpConnection> trickling = Trickling(*server, 50);
  for (int i = 0; i < 10; ++i) {
    for (const HttpConnection& connection : trickling) connection.Send(i == 0 ? ": " : "x");
    EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  }
  EXPECT_TRUE(trickling.back().open());
}

TEST(HttpServer, OfTooManyRequestsThatDoNotEndAClientLosesItsOldest) {
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Hours(1);
  options.head_timeout = absl::Hours(1);
  options.connections_per_client = 2;
  const auto server = StartOrDie(options);
  const auto other = HttpConnection::From("127.0.0.2", server->port());
  ASSERT_TRUE(other.ok()) << other.status();
  other->Send("GET /pa");
  std::vector<HttpConnection> begun;
  for (int i = 0; i < 3; ++i) {
    begun.push_back(ConnectOrDie(*server));
    begun.back().Send("GET /pa");
    // After this the server has read what was sent before.
    EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  }
  EXPECT_EQ(begun[0].ReceiveAll(), "");
  EXPECT_FALSE(begun[0].open());
  const std::vector<const HttpConnection*> others = {&begun[1], &begun[2], &*other};
  for (const HttpConnection* kept : others) {
    kept->Send("ge HTTP/1.1\r\n\r\n");
    EXPECT_THAT(kept->ReceiveAll(), HasSubstr("path=/page"));
  }
}

TEST(HttpServer, ConnectionsWithoutARequestHoldNobodyUp) {
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Hours(1);
  const auto server = StartOrDie(options);
  std::vector<HttpConnection> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(ConnectOrDie(*server));
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  for (const HttpConnection& connection : silent) EXPECT_TRUE(connection.open());
  // Each is served as soon as it asks.
  for (const HttpConnection& connection : silent) {
    connection.Send("GET /page HTTP/1.1\r\n\r\n");
    EXPECT_THAT(connection.ReceiveAll(), HasSubstr("path=/page"));
  }
}

TEST(HttpServer, OfTooManyConnectionsWithoutARequestTheOldestIsClosed) {
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Hours(1);
  const auto server = StartOrDie(options);
  std::vector<HttpConnection> silent;
  for (size_t i = 0; i < WaitingRoom::kMaxWaiting + 1; ++i) {
    silent.push_back(ConnectOrDie(*server));
  }
  EXPECT_EQ(silent.front().ReceiveAll(), "");
  EXPECT_FALSE(silent.front().open());
  EXPECT_TRUE(silent.back().open());
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
}

TEST(HttpServer, AClientWithManyConnectionsTakesNoOthersPlace) {
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Hours(1);
  const auto server = StartOrDie(options);
  const auto other = HttpConnection::From("127.0.0.2", server->port());
  ASSERT_TRUE(other.ok()) << other.status();
  std::vector<HttpConnection> silent;
  for (size_t i = 0; i < WaitingRoom::kMaxWaiting + 10; ++i) {
    silent.push_back(ConnectOrDie(*server));
  }
  EXPECT_EQ(silent[9].ReceiveAll(), "");
  other->Send("GET /page HTTP/1.1\r\n\r\n");
  EXPECT_THAT(other->ReceiveAll(), HasSubstr("path=/page"));
}

TEST(HttpServer, AHeadThatDoesNotEndIsCutOffBeforeTheConnectionIs) {
  ManualClock clock;
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Hours(1);
  options.head_timeout = absl::Seconds(1);
  options.clock = &clock;
  const auto server = StartOrDie(options);
  const HttpConnection half = ConnectOrDie(*server);
  half.Send("GET / HTTP/1.1\r\nX-Half: ");
  const absl::Duration before = clock.Monotonic();
  EXPECT_THAT(ReceivedWhileTimePasses(half, &clock), StartsWith("HTTP/1.1 400"));
  EXPECT_LT(clock.Monotonic() - before, absl::Hours(1));
}

TEST(HttpServer, ABodyHasTheConnectionsTime) {
  ManualClock clock;
  HttpServer::Options options = PortFlag();
  options.max_body_bytes = 1000;
  options.connection_timeout = absl::Hours(1);
  options.head_timeout = absl::Seconds(1);
  options.clock = &clock;
  const auto server = StartOrDie(options);
  const HttpConnection client = ConnectOrDie(*server);
  client.Send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(client.ReceiveUntil("\r\n\r\n"), StartsWith("HTTP/1.1 100"));
  clock.Advance(absl::Minutes(30));
  // The server looks for overdue clients before it waits for another one.
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  client.Send("{}");
  EXPECT_THAT(client.ReceiveAll(), HasSubstr("body={}"));
}

// More than all buffers between a server and its client take.
HttpResponse LongAnswer(const HttpRequest&) {
  HttpResponse response;
  response.body = std::string(24'000'000, 'a');
  return response;
}

TEST(HttpServer, AnAnswerMayTakeAsLongAsItsClientTakesIt) {
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Milliseconds(100);
  const auto server = StartOrDie(options, LongAnswer);
  const HttpConnection client = ConnectOrDie(*server);
  client.Send("GET / HTTP/1.1\r\n\r\n");
  client.ReceiveUntil("\r\n\r\n");
  size_t received = 0;
  for (std::string bytes = "a"; !bytes.empty(); received += bytes.size()) {
    bytes = client.Receive(256 * 1024);
    absl::SleepFor(absl::Milliseconds(5));  // the client's pace
  }
  EXPECT_EQ(received, LongAnswer({}).body.size());
}

HttpServer::Handler LongAnswersOfOnePath() {
  return [](const HttpRequest& request) {
    return request.path == "/long" ? LongAnswer(request) : Echo(request);
  };
}

// Lets the client take the head of an answer and no more.
void AskForLongAnswer(const HttpConnection& client) {
  client.Send("GET /long HTTP/1.1\r\n\r\n");
  client.ReceiveUntil("\r\n\r\n");
}

TEST(HttpServer, CutsOffAClientThatDoesNotTakeTheAnswer) {
  ManualClock clock;
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Seconds(5);
  options.clock = &clock;
  const auto server = StartOrDie(options, LongAnswersOfOnePath());
  const HttpConnection client = ConnectSlowlyOrDie(*server);
  AskForLongAnswer(client);
  // The only thread is free meanwhile.
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  clock.Advance(absl::Hours(1));
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  EXPECT_LT(client.ReceiveAll().size(), LongAnswer({}).body.size());
}

TEST(HttpServer, OfTooManyAnswersThatAreNotTakenAClientLosesTheOldest) {
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Hours(1);
  options.connections_per_client = 2;
  const auto server = StartOrDie(options, LongAnswersOfOnePath());
  std::vector<HttpConnection> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(ConnectOrDie(*server));
    AskForLongAnswer(slow.back());
  }
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  EXPECT_LT(slow[0].ReceiveAll().size(), LongAnswer({}).body.size());
  for (int i : {1, 2}) EXPECT_EQ(slow[i].ReceiveAll().size(), LongAnswer({}).body.size());
}

TEST(HttpServer, TheHandlersTimeIsNotTheClients) {
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Milliseconds(100);
  const auto server = StartOrDie(options, [](const HttpRequest& request) {
    const absl::Time until = absl::Now() + absl::Milliseconds(150);
    while (absl::Now() < until) continue;
    return Echo(request);
  });
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
}

TEST(HttpServer, EndsWhileAClientIsSilent) {
  HttpServer::Options options = PortFlag();
  options.connection_timeout = absl::Hours(1);
  options.head_timeout = absl::Hours(1);
  auto server = StartOrDie(options);
  const HttpConnection silent = ConnectOrDie(*server);
  silent.Send("GET /pa");
  const HttpConnection waiting = ConnectOrDie(*server);
  server.reset();
  EXPECT_THAT(silent.ReceiveAll(), testing::AnyOf("", StartsWith("HTTP/1.1 400")));
}

}  // namespace
}  // namespace keelson
