// The dashboard over HTTP.
#include "dashboard/dashboard.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "core/http/http_testing.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPage[] = "<!doctype html><title>the page</title>";

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class DashboardTest : public testing::Test {
 protected:
  DashboardTest() {
    options_.runs.model_dir = "/jobs/mnist";
    options_.runs.live = true;
    options_.runs.file_system = &memory_;
    options_.telemetry = &telemetry_;
    options_.poll_interval = absl::Milliseconds(1);
    options_.assets["/"] = {"text/html; charset=utf-8", Gzip(kPage), true};
    options_.assets["/assets/page.css"] = {"text/css; charset=utf-8", "body {}", false};
  }
  void Start() {
    auto dashboard = Dashboard::Start(options_);
    ASSERT_TRUE(dashboard.ok()) << dashboard.status();
    dashboard_ = *std::move(dashboard);
  }
  HttpAnswer Ask(const std::string& method, const std::string& target,
                 const std::string& headers = "", const std::string& body = "") {
    if (dashboard_ == nullptr) Start();
    const auto answer = AskHttp(dashboard_->port(), method, target, headers, body);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(HttpAnswer());
  }

  MemoryFileSystem memory_;
  RunFiles files_{&memory_, "/jobs/mnist"};
  Telemetry telemetry_;
  ManualClock clock_;
  Dashboard::Options options_;
  std::unique_ptr<Dashboard> dashboard_;
};

TEST_F(DashboardTest, ServesThePageAndWhatItLoads) {
  const HttpAnswer page = Ask("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, kPage);
  EXPECT_THAT(page.head, HasSubstr("Content-Type: text/html; charset=utf-8"));
  EXPECT_EQ(Ask("GET", "/assets/page.css").body, "body {}");
  EXPECT_EQ(Ask("HEAD", "/").body, "");
}

TEST_F(DashboardTest, ThePageIsSentAsItWasPacked) {
  const HttpAnswer page = Ask("GET", "/", "Accept-Encoding: gzip, deflate, br\r\n");
  EXPECT_THAT(page.head, HasSubstr("Content-Encoding: gzip"));
  EXPECT_EQ(page.body, Gzip(kPage));
}

TEST_F(DashboardTest, ThePageIsUnpackedForThoseWhoDoNotTakeGzip) {
  for (const char* accepted : {"", "identity", "gzip;q=0", "br", "gzip;q=x"}) {
    HttpRequest request;
    request.headers["accept-encoding"] = accepted;
    const HttpResponse response = AnswerAsset(request, options_.assets.at("/"));
    EXPECT_EQ(response.body, kPage) << accepted;
    for (const auto& header : response.headers) EXPECT_NE(header.first, "Content-Encoding");
  }
  Asset damaged = options_.assets.at("/");
  damaged.bytes.resize(damaged.bytes.size() / 2);
  EXPECT_EQ(AnswerAsset(HttpRequest(), damaged).status, 404);
}

TEST_F(DashboardTest, APageThatTheBrowserHasIsNotSentAgain) {
  const std::string head = Ask("GET", "/").head;
  const size_t begin = head.find("ETag: ") + 6;
  const std::string tag = head.substr(begin, head.find("\r\n", begin) - begin);
  const HttpAnswer again = Ask("GET", "/", absl::StrCat("If-None-Match: ", tag, "\r\n"));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(Ask("GET", "/", "If-None-Match: W/\"other\"\r\n").status, 200);
}

TEST_F(DashboardTest, WithoutAPageItTellsWhereTheApiIs) {
  options_.assets.clear();
  EXPECT_THAT(Ask("GET", "/").body, HasSubstr("/api/v1/runs"));
}

TEST_F(DashboardTest, EveryAnswerHasTheSecurityHeaders) {
  for (const char* target :
       {"/", "/assets/page.css", "/api/v1/runs", "/api/v1/none", "/none", "/metrics", "/healthz"}) {
    const std::string head = Ask("GET", target).head;
    EXPECT_THAT(head, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self';"));
    EXPECT_THAT(head, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(head, Not(HasSubstr("unsafe")));
    EXPECT_THAT(head, HasSubstr("X-Content-Type-Options: nosniff"));
    EXPECT_THAT(head, HasSubstr("Referrer-Policy: no-referrer"));
    EXPECT_THAT(head, Not(HasSubstr("Access-Control-Allow-Origin")));
  }
  EXPECT_THAT(Ask("GET", "/api/v1/runs").head, HasSubstr("Cache-Control: no-store"));
}

TEST_F(DashboardTest, NoPathLeadsToAFile) {
  files_.Write("secret", "s3cret");
  for (const char* target :
       {"/../secret", "/assets/../secret", "/assets/%2e%2e/secret", "/assets/..%2fsecret",
        "/jobs/mnist/secret", "//jobs/mnist/secret", "/assets//jobs/mnist/secret",
        "/api/v1/runs/../../jobs/mnist/secret", "/api/v1/runs/mnist/../../secret",
        "/api/v1/runs/%2e%2e%2fmnist/model", "/assets/page.css/../../secret", "/assets"}) {
    const HttpAnswer answer = Ask("GET", target);
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_THAT(answer.body, Not(HasSubstr("s3cret")));
  }
}

TEST_F(DashboardTest, ServesTheApiPackedForThoseWhoTakeIt) {
  files_.Write("train_config.textproto", TinyConfigText());
  std::string line;
  for (int i = 0; i < 50; ++i) line += EvaluationLine(i, 1.7e9, 0.5, 0.9);
  files_.Append("eval/metrics.jsonl", line);
  Start();
  while (!dashboard_->loaded()) std::this_thread::yield();
  const std::string plain = Ask("GET", "/api/v1/runs/mnist/snapshots").body;
  EXPECT_EQ(ParseJson(plain).value_or(Json())["snapshots"].size(), 50u);
  const HttpAnswer packed = Ask("GET", "/api/v1/runs/mnist/snapshots", "Accept-Encoding: gzip\r\n");
  EXPECT_THAT(packed.head, HasSubstr("Content-Encoding: gzip"));
  EXPECT_LT(packed.body.size(), plain.size() / 4);
}

TEST_F(DashboardTest, ServesTheProbes) {
  EXPECT_EQ(Ask("GET", "/healthz").status, 200);
  EXPECT_EQ(Ask("GET", "/readyz").status, 503);
  telemetry_.ready = true;
  EXPECT_EQ(Ask("GET", "/readyz").status, 200);
  EXPECT_EQ(Ask("GET", "/metrics").status, 200);
}

TEST_F(DashboardTest, OtherMethodsAndPaths) {
  EXPECT_EQ(Ask("POST", "/").status, 405);
  EXPECT_EQ(Ask("DELETE", "/api/v1/runs/mnist").status, 405);
  EXPECT_EQ(Ask("PUT", "/api/v1/runs/mnist/predict").status, 405);
  EXPECT_THAT(Ask("GET", "/none").body, HasSubstr("not found; try /"));
}

TEST_F(DashboardTest, BodiesAreBounded) {
  const std::string body = absl::StrCat("{\"features\": [", std::string(1 << 20, '1'), "]}");
  EXPECT_EQ(
      Ask("POST", "/api/v1/runs/mnist/predict", "Content-Type: application/json\r\n", body).status,
      413);
}

TEST_F(DashboardTest, OneClientDoesNotKeepItBusy) {
  options_.clock = &clock_;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Ask("GET", "/healthz").status, 200) << i;
  const HttpAnswer refused = Ask("GET", "/healthz");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After: "));
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < 50; ++i) ASSERT_EQ(Ask("GET", "/healthz").status, 200) << i;
  EXPECT_EQ(Ask("GET", "/healthz").status, 429);
}

TEST_F(DashboardTest, ChangesNeedTheToken) {
  EXPECT_EQ(
      Ask("POST", "/api/v1/runs/mnist/actions/end_training",
          "Content-Type: application/json\r\nAuthorization: Bearer x\r\n", R"({"reason": "a"})")
          .status,
      403);
}

TEST_F(DashboardTest, StreamsWhatIsNewUntilItEnds) {
  Start();
  const auto connection = HttpConnection::To(dashboard_->port());
  ASSERT_TRUE(connection.ok()) << connection.status();
  connection->Send("GET /api/v1/events?run=mnist HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string head = connection->ReceiveUntil("event: hello\n");
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(head, HasSubstr("nosniff"));
  files_.Append("eval/metrics.jsonl", EvaluationLine(100, 1.7e9, 0.5, 0.75));
  const std::string events = connection->ReceiveUntil("event: snapshots\n");
  EXPECT_THAT(events, HasSubstr("eval/accuracy"));
  dashboard_ = nullptr;
  connection->ReceiveAll();
}

TEST_F(DashboardTest, SixteenStreamsAtATimeAndFourToAClient) {
  Start();
  std::vector<HttpConnection> connections;
  const auto open = [&](const std::string& client) {
    auto connection = HttpConnection::From(client, dashboard_->port());
    EXPECT_TRUE(connection.ok()) << connection.status();
    connection->Send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const int status = ParseHttpAnswer(connection->ReceiveUntil("\r\n\r\n"))->status;
    connections.push_back(*std::move(connection));
    return status;
  };
  for (int client = 2; client < 6; ++client) {
    const std::string address = absl::StrCat("127.0.0.", client);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(open(address), 200);
    EXPECT_EQ(open(address), 503);
  }
  EXPECT_EQ(Ask("GET", "/api/v1/events").status, 503);
  EXPECT_EQ(Ask("GET", "/api/v1/runs").status, 200);
}

TEST_F(DashboardTest, AnswersWhileFiftyRequestsDoNotEnd) {
  // It stands still, so no request is overdue.
  options_.clock = &clock_;
  Start();
  std::vector<HttpConnection> trickling;
  for (int i = 0; i < 50; ++i) {
    auto connection = HttpConnection::From(absl::StrCat("127.0.1.", i + 1), dashboard_->port());
    ASSERT_TRUE(connection.ok()) << connection.status();
    connection->Send("POST /api/v1/runs/mnist/predict HTTP/1.1\r\nContent-Length: 99\r\n\r\n{");
    trickling.push_back(*std::move(connection));
  }
  for (const char* target : {"/", "/api/v1/runs", "/metrics", "/healthz"}) {
    EXPECT_EQ(Ask("GET", target).status, 200) << target;
  }
  for (const HttpConnection& connection : trickling) EXPECT_TRUE(connection.open());
}

TEST_F(DashboardTest, AnswersForItsOwnNamesAlone) {
  options_.hosts = {"mnist.example.com"};
  Start();
  const auto status_for = [&](const std::string& host) {
    const absl::StatusOr<HttpConnection> browser = HttpConnection::To(dashboard_->port());
    EXPECT_TRUE(browser.ok()) << browser.status();
    browser->Send(absl::StrCat("GET /api/v1/runs HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
    return ParseHttpAnswer(browser->ReceiveAll())->status;
  };
  for (const char* host :
       {"localhost:6006", "127.0.0.1:6006", "mnist.example.com", "mnist-dashboard.default.svc"}) {
    EXPECT_EQ(status_for(host), 200) << host;
  }
  EXPECT_EQ(status_for("evil.example"), 403);
  EXPECT_EQ(status_for("evil.example:6006"), 403);
}

TEST_F(DashboardTest, NamesTheFlagOfABadHost) {
  options_.hosts = {"https://mnist.example.com"};
  EXPECT_THAT(std::string(Dashboard::Start(options_).status().message()),
              HasSubstr("--dashboard_hosts: expected a host's name"));
}

TEST_F(DashboardTest, NamesTheFlagOfABadAddress) {
  options_.address = "here";
  EXPECT_EQ(Dashboard::Start(options_).status(),
            absl::InvalidArgumentError("--dashboard_address: expected an address such as 127.0.0.1 "
                                       "or ::, found here"));
}

TEST_F(DashboardTest, ErrorsOfTheStart) {
  Start();
  options_.port = dashboard_->port();
  const absl::Status status = Dashboard::Start(options_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--dashboard_port"));
  options_.port = 0;
  options_.runs.runs = {"/nowhere"};
  EXPECT_TRUE(absl::IsNotFound(Dashboard::Start(options_).status()));
}

}  // namespace
}  // namespace keelson
