// Streams of events, which a server sends beside its answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/http/server_testing.h"

namespace keelson {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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
