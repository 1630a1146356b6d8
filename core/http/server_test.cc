#include "core/http/server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/exit_code.h"
#include "core/base/stop_signal.h"
#include "core/http/http_testing.h"
#include "core/http/waiting_room.h"

namespace keelson {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

HttpResponse Echo(const HttpRequest& request) {
  HttpResponse response;
  response.content_type = "text/x-echo";
  response.body =
      absl::StrCat("path=", request.path, " body=", request.body, " client=", request.client, "\n");
  return response;
}

HttpServer::Options PortFlag() {
  HttpServer::Options options;
  options.flag = "--port_flag";
  return options;
}

std::unique_ptr<HttpServer> StartOrDie(const HttpServer::Options& options = PortFlag(),
                                       HttpServer::Handler handler = Echo) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(options, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

HttpAnswer Ask(const HttpServer& server, absl::string_view method, absl::string_view target,
               absl::string_view headers = "", absl::string_view body = "") {
  const absl::StatusOr<HttpAnswer> answer = AskHttp(server.port(), method, target, headers, body);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(HttpAnswer());
}

HttpConnection ConnectOrDie(const HttpServer& server) {
  absl::StatusOr<HttpConnection> connection = HttpConnection::To(server.port());
  EXPECT_TRUE(connection.ok()) << connection.status();
  return *std::move(connection);
}

HttpConnection ConnectSlowlyOrDie(const HttpServer& server) {
  absl::StatusOr<HttpConnection> connection = HttpConnection::SlowlyTo(server.port());
  EXPECT_TRUE(connection.ok()) << connection.status();
  return *std::move(connection);
}

std::string Exchanged(const HttpServer& server, absl::string_view bytes) {
  const HttpConnection connection = ConnectOrDie(server);
  connection.Send(bytes);
  return connection.ReceiveAll();
}

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

int CountEntries(const char* path) {
  DIR* const directory = opendir(path);
  int entries = 0;
  while (readdir(directory) != nullptr) ++entries;
  closedir(directory);
  return entries;
}

// Something that several threads wait for; a wait ends after 20 s.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  bool Wait() {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    MutexLock lock(&mu_);
    while (!open_ && absl::Now() < limit) changed_.WaitFor(&mu_, absl::Seconds(1));
    return open_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

// Tells what it is given.
class Told : public EventSource {
 public:
  // `gone` is opened when this is destroyed.
  explicit Told(std::shared_ptr<Gate> gone = nullptr) : gone_(std::move(gone)) {}
  ~Told() override {
    if (gone_ != nullptr) gone_->Open();
  }

  void Tell(std::optional<std::string> bytes) {
    MutexLock lock(&mu_);
    queue_.push_back(std::move(bytes));
    changed_.NotifyAll();
  }

  std::optional<std::string> Next(absl::Duration timeout) override {
    MutexLock lock(&mu_);
    if (queue_.empty()) changed_.WaitFor(&mu_, timeout);
    if (queue_.empty()) return "";
    std::optional<std::string> bytes = std::move(queue_.front());
    queue_.pop_front();
    return bytes;
  }

 private:
  const std::shared_ptr<Gate> gone_;
  Mutex mu_;
  CondVar changed_;
  std::deque<std::optional<std::string>> queue_ ABSL_GUARDED_BY(mu_);
};

HttpServer::Options StreamOptions(int max_streams) {
  HttpServer::Options options = PortFlag();
  options.max_streams = max_streams;
  return options;
}

HttpServer::Handler Streams(std::function<std::shared_ptr<EventSource>()> source) {
  return [source = std::move(source)](const HttpRequest& request) {
    HttpResponse response = Echo(request);
    if (request.path == "/events") response.events = source();
    return response;
  };
}

constexpr char kGetEvents[] = "GET /events HTTP/1.1\r\n\r\n";

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

TEST(HttpServer, LeavesNoFilesBehind) {
  StartOrDie();
  const int files = CountEntries("/proc/self/fd");
  {
    const auto server =
        StartOrDie(StreamOptions(1), Streams([] { return std::make_shared<Told>(); }));
    EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
    const HttpConnection reader = ConnectOrDie(*server);
    reader.Send(kGetEvents);
    reader.ReceiveUntil("\r\n\r\n");
  }
  EXPECT_EQ(CountEntries("/proc/self/fd"), files);
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

TEST(HttpServerStreams, TellWhatComesAtOnceAndEnd) {
  const auto told = std::make_shared<Told>();
  const auto server = StartOrDie(StreamOptions(1), Streams([&] { return told; }));
  const HttpConnection reader = ConnectOrDie(*server);
  reader.Send(kGetEvents);
  EXPECT_THAT(reader.ReceiveUntil("\r\n\r\n"), HasSubstr("Content-Type: text/event-stream"));
  told->Tell("data: 1\n\n");
  EXPECT_EQ(reader.ReceiveUntil("\n\n"), "data: 1\n\n");
  told->Tell("data: 2\n\n");
  EXPECT_EQ(reader.ReceiveUntil("\n\n"), "data: 2\n\n");
  told->Tell(std::nullopt);
  EXPECT_EQ(reader.ReceiveAll(), "");
}

TEST(HttpServerStreams, AreBeyondTheThreadsButBounded) {
  std::vector<std::shared_ptr<Gate>> gone;
  const auto server = StartOrDie(StreamOptions(3), Streams([&] {
                                   gone.push_back(std::make_shared<Gate>());
                                   return std::make_shared<Told>(gone.back());
                                 }));
  std::vector<HttpConnection> readers;
  for (int i = 0; i < 3; ++i) {
    readers.push_back(ConnectOrDie(*server));
    readers.back().Send(kGetEvents);
    EXPECT_THAT(readers.back().ReceiveUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
  const HttpAnswer refused = Ask(*server, "GET", "/events");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, StartsWith("{\"error\": \"there are 3 streams"));
  // A client that goes makes place.
  readers.pop_back();
  ASSERT_TRUE(gone[2]->Wait());
  int status = 503;
  for (int tries = 0; status == 503 && tries < 2000; ++tries) {
    const HttpConnection reader = ConnectOrDie(*server);
    reader.Send(kGetEvents);
    status = ParseHttpAnswer(reader.ReceiveUntil("\r\n\r\n"))->status;
  }
  EXPECT_EQ(status, 200);
}

TEST(HttpServerStreams, OneClientDoesNotTakeAll) {
  HttpServer::Options options = StreamOptions(3);
  options.streams_per_client = 2;
  const auto server = StartOrDie(options, Streams([] { return std::make_shared<Told>(); }));
  std::vector<HttpConnection> readers;
  const auto status_from = [&](const char* address) {
    auto reader = HttpConnection::From(address, server->port());
    EXPECT_TRUE(reader.ok()) << reader.status();
    reader->Send(kGetEvents);
    const std::string answer = reader->ReceiveUntil("\r\n\r\n");
    readers.push_back(*std::move(reader));
    return ParseHttpAnswer(answer).value_or(HttpAnswer()).status;
  };
  EXPECT_EQ(status_from("127.0.0.2"), 200);
  EXPECT_EQ(status_from("127.0.0.2"), 200);
  EXPECT_EQ(status_from("127.0.0.2"), 503);
  EXPECT_THAT(readers.back().ReceiveAll(),
              StartsWith("{\"error\": \"there are 2 streams of events to 127.0.0.2 already"));
  EXPECT_EQ(status_from("127.0.0.3"), 200);
  EXPECT_EQ(status_from("127.0.0.4"), 503);
}

TEST(HttpServerStreams, PingWhenTheyAreSilent) {
  HttpServer::Options options = StreamOptions(1);
  options.ping_interval = absl::Milliseconds(20);
  const auto server = StartOrDie(options, Streams([] { return std::make_shared<Told>(); }));
  const HttpConnection reader = ConnectOrDie(*server);
  reader.Send(kGetEvents);
  reader.ReceiveUntil("\r\n\r\n");
  EXPECT_EQ(reader.ReceiveUntil("\n\n"), ": ping\n\n");
  EXPECT_EQ(reader.ReceiveUntil("\n\n"), ": ping\n\n");
}

TEST(HttpServerStreams, CutOffAClientThatDoesNotRead) {
  const auto gone = std::make_shared<Gate>();
  HttpServer::Options options = StreamOptions(1);
  options.ping_interval = absl::Milliseconds(50);
  const auto server = StartOrDie(options, Streams([&] {
                                   auto told = std::make_shared<Told>(gone);
                                   told->Tell(std::string(50'000'000, 'a'));
                                   return told;
                                 }));
  const HttpConnection reader = ConnectSlowlyOrDie(*server);
  reader.Send(kGetEvents);
  EXPECT_TRUE(gone->Wait());
}

TEST(HttpServerStreams, EndWithTheServer) {
  const auto gone = std::make_shared<Gate>();
  HttpServer::Options options = StreamOptions(2);
  options.ping_interval = absl::Hours(1);
  auto server = StartOrDie(options, Streams([&] { return std::make_shared<Told>(gone); }));
  std::vector<HttpConnection> readers;
  for (int i = 0; i < 2; ++i) {
    readers.push_back(ConnectOrDie(*server));
    readers.back().Send(kGetEvents);
    readers.back().ReceiveUntil("\r\n\r\n");
  }
  server.reset();
  EXPECT_TRUE(gone->Wait());
  EXPECT_EQ(readers[0].ReceiveAll(), "");
}

class Throws : public EventSource {
 public:
  std::optional<std::string> Next(absl::Duration) override { throw std::runtime_error("bad"); }
};

TEST(HttpServerStreams, ASourceThatThrowsEndsItsStreamAlone) {
  const auto server =
      StartOrDie(StreamOptions(1), Streams([] { return std::make_shared<Throws>(); }));
  EXPECT_THAT(Exchanged(*server, kGetEvents), EndsWith("\r\n\r\n"));
  EXPECT_EQ(Ask(*server, "GET", "/page").status, 200);
}

}  // namespace
}  // namespace keelson
