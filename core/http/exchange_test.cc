#include "core/http/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "core/http/http_testing.h"
#include "core/http/request_reader.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

struct Outcome {
  std::string written;
  Exchange exchange;
  bool whole = false;  // the request
  // The handler's requests: one, or none.
  std::vector<HttpRequest> asked;

  HttpAnswer answer() const {
    const absl::StatusOr<HttpAnswer> answer = ParseHttpAnswer(written);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(HttpAnswer());
  }
};

HttpResponse Text(const std::string& body) {
  HttpResponse response;
  response.body = body;
  return response;
}

Outcome Exchanged(const std::string& bytes, int64_t max_body_bytes = 0,
                  HttpResponse response = Text("answer\n")) {
  RequestReader reader(max_body_bytes);
  reader.Add(bytes);
  Outcome outcome;
  outcome.whole = reader.whole();
  outcome.exchange =
      ServeRequest(reader.Take(), "192.0.2.1", max_body_bytes, [&](const HttpRequest& request) {
        outcome.asked.push_back(request);
        return response;
      });
  outcome.written = outcome.exchange.answer;
  return outcome;
}

void ExpectRefused(const Outcome& outcome, int status) {
  EXPECT_EQ(outcome.asked.size(), 0u);
  EXPECT_EQ(outcome.answer().status, status) << outcome.written;
  EXPECT_THAT(outcome.answer().body, testing::MatchesRegex("\\{\"error\": \"[^\"]+\"\\}\n"));
  EXPECT_THAT(outcome.answer().head, HasSubstr("Content-Type: application/json"));
}

TEST(ServeRequest, GivesTheHandlerTheRequest) {
  const Outcome outcome = Exchanged(
      "POST /a%20b?x=1&x=2 HTTP/1.1\r\nHost: here\r\nX-Two: first\r\nx-two: second\r\n"
      "Content-Length: 4\r\n\r\nbody",
      10);
  ASSERT_EQ(outcome.asked.size(), 1u);
  const HttpRequest& asked = outcome.asked[0];
  EXPECT_EQ(asked.method, "POST");
  EXPECT_EQ(asked.path, "/a b");
  EXPECT_THAT(asked.query, ElementsAre(Pair("x", "1"), Pair("x", "2")));
  EXPECT_THAT(asked.headers, ElementsAre(Pair("content-length", "4"), Pair("host", "here"),
                                         Pair("x-two", "first")));
  EXPECT_EQ(asked.body, "body");
  EXPECT_EQ(asked.client, "192.0.2.1");
  EXPECT_TRUE(outcome.whole);
}

TEST(ServeRequest, WritesTheHandlersAnswer) {
  HttpResponse response = JsonError(404, "not here");
  response.headers = {{"X-Extra", "more"}, {"X-Bad", "a\r\nSet-Cookie: b"}};
  const Outcome outcome = Exchanged("GET /lost HTTP/1.1\r\n\r\n", 0, response);
  EXPECT_EQ(outcome.answer().status, 404);
  EXPECT_THAT(outcome.answer().head, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(outcome.answer().head, HasSubstr("X-Extra: more"));
  EXPECT_THAT(outcome.answer().head, HasSubstr("Connection: close"));
  EXPECT_THAT(outcome.written, Not(HasSubstr("Set-Cookie")));
  EXPECT_EQ(outcome.answer().body, response.body);
}

TEST(ServeRequest, AnEmptyAnswerStaysEmpty) {
  HttpResponse response;
  response.status = 404;
  const HttpAnswer answer = Exchanged("GET / HTTP/1.1\r\n\r\n", 0, response).answer();
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, "");
  EXPECT_THAT(answer.head, HasSubstr("Content-Length: 0"));
}

TEST(ServeRequest, AnswersHeadWithoutTheBody) {
  const HttpAnswer answer = Exchanged("HEAD /page HTTP/1.1\r\n\r\n").answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("Content-Length: 7"));
  EXPECT_EQ(answer.body, "");
}

TEST(ServeRequest, RefusesMethods) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"}) {
    const Outcome outcome = Exchanged(absl::StrCat(method, " / HTTP/1.1\r\n\r\n"));
    ExpectRefused(outcome, 405);
    EXPECT_THAT(outcome.answer().head, testing::ContainsRegex("Allow: GET, HEAD(\r|$)"));
  }
  const Outcome outcome = Exchanged("PUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 10);
  ExpectRefused(outcome, 405);
  EXPECT_THAT(outcome.answer().head, testing::ContainsRegex("Allow: GET, HEAD, POST(\r|$)"));
}

TEST(ServeRequest, RefusesWhatIsNoRequest) {
  for (const char* bytes :
       {"hello\r\n\r\n", "GET /page\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / HTTP/1.1\n\n",
        "GET page HTTP/1.1\r\n\r\n", "GET /%00 HTTP/1.1\r\n\r\n", "GET /a/%zz HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: cut o"}) {
    ExpectRefused(Exchanged(bytes), 400);
  }
  EXPECT_EQ(Exchanged("").written, "");
}

TEST(ServeRequest, BoundsTheHead) {
  // Newer versions of the library take 100 headers.
  const std::string padding = absl::StrCat("X-Padding: ", std::string(200, 'a'), "\r\n");
  std::string request = "GET / HTTP/1.1\r\n";
  while (request.size() + padding.size() + 4 <= 16 * 1024) request += padding;
  request += absl::StrCat("X:", std::string(16 * 1024 - request.size() - 6, 'a'));
  EXPECT_EQ(Exchanged(request + "\r\n\r\n").answer().status, 200);
  const Outcome outcome = Exchanged(request + "a\r\n\r\n");
  ExpectRefused(outcome, 431);
  EXPECT_FALSE(outcome.whole);
  ExpectRefused(Exchanged("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n"), 414);
  ExpectRefused(Exchanged("GET /" + std::string(20000, 'a') + " HTTP/1.1\r\n\r\n"), 414);
}

TEST(ServeRequest, BoundsTheBody) {
  const std::string post = "POST / HTTP/1.1\r\n";
  ExpectRefused(Exchanged(post + "Content-Length: 11\r\n\r\n0123456789a", 10), 413);
  ExpectRefused(Exchanged(post + "Content-Length: 99999999999999999999\r\n\r\n", 10), 413);
  ExpectRefused(Exchanged(post + "Content-Length: -1\r\n\r\n", 10), 400);
  ExpectRefused(Exchanged(post + "Content-Length: 3\r\n\r\nab", 10), 400);
  ExpectRefused(
      Exchanged(post + "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n", 10), 413);
  ExpectRefused(Exchanged(post + "Transfer-Encoding: gzip\r\n\r\n", 10), 501);
  ExpectRefused(
      Exchanged(post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 10),
      400);
  ExpectRefused(Exchanged("GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 10), 413);
  const Outcome chunked =
      Exchanged(post + "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n", 10);
  ASSERT_EQ(chunked.asked.size(), 1u);
  EXPECT_EQ(chunked.asked[0].body, "0123456789");
}

TEST(ServeRequest, LeavesInvitationsToItsCaller) {
  const std::string post = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: ";
  EXPECT_EQ(Exchanged(post + "2\r\n\r\n{}", 10).answer().status, 200);
  ExpectRefused(Exchanged(post + "11\r\n\r\n", 10), 413);
}

TEST(ServeRequest, TakesACompressedBodyAsItIs) {
  const Outcome outcome = Exchanged(
      "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x01", 10);
  ASSERT_EQ(outcome.asked.size(), 1u);
  EXPECT_EQ(outcome.asked[0].body, "\x1f\x8b\x08\x01");
}

TEST(ServeRequest, CompressesTextForThoseWhoAcceptGzip) {
  const std::string long_text(10000, 'a');
  const std::string get = "GET / HTTP/1.1\r\nAccept-Encoding: ";
  const HttpAnswer gzip = Exchanged(get + "br, gzip\r\n\r\n", 0, Text(long_text)).answer();
  EXPECT_THAT(gzip.head, HasSubstr("Content-Encoding: gzip"));
  EXPECT_LT(gzip.body.size(), 1000u);
  const HttpAnswer plain = Exchanged(get + "br\r\n\r\n", 0, Text(long_text)).answer();
  EXPECT_THAT(plain.head, Not(HasSubstr("Content-Encoding")));
  EXPECT_EQ(plain.body, long_text);
  HttpResponse compressed = Text("already");
  compressed.headers = {{"Content-Encoding", "gzip"}};
  EXPECT_EQ(Exchanged(get + "gzip\r\n\r\n", 0, compressed).answer().body, "already");
}

TEST(ServeRequest, GivesAnswersWhole) {
  const HttpAnswer answer = Exchanged("GET / HTTP/1.1\r\nRange: bytes=0-1\r\n\r\n").answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "answer\n");
}

TEST(ServeRequest, AnswersWhatTheHandlerThrows) {
  ReceivedRequest request;
  request.head = "GET /page HTTP/1.1\r\n\r\n";
  const Exchange exchange = ServeRequest(request, "", 0, [](const HttpRequest&) -> HttpResponse {
    throw std::runtime_error("secret");
  });
  EXPECT_THAT(exchange.answer, testing::StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(exchange.answer, Not(HasSubstr("secret")));
}

TEST(UnaskedAnswer, IsAWholeAnswer) {
  HttpResponse response = JsonError(429, "too many");
  response.headers = {{"Retry-After", "1"}};
  const absl::StatusOr<HttpAnswer> answer = ParseHttpAnswer(UnaskedAnswer(response));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 429);
  EXPECT_THAT(answer->head, testing::StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_THAT(answer->head, HasSubstr("Retry-After: 1"));
  EXPECT_THAT(answer->head, HasSubstr("Connection: close"));
  EXPECT_EQ(answer->body, response.body);
}

class NoEvents : public EventSource {
 public:
  std::optional<std::string> Next(absl::Duration) override { return std::nullopt; }
};

TEST(ServeRequest, LeavesAStreamOpen) {
  HttpResponse response = Text("not told");
  response.headers = {{"Cache-Control", "no-store"}};
  response.events = std::make_shared<NoEvents>();
  const Outcome outcome =
      Exchanged("GET /events HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n", 0, response);
  EXPECT_EQ(outcome.exchange.events, response.events);
  const HttpAnswer answer = outcome.answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(answer.head, HasSubstr("Cache-Control: no-store"));
  EXPECT_THAT(answer.head, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(answer.head, Not(HasSubstr("Encoding")));
  EXPECT_EQ(answer.body, "");
  const Outcome head = Exchanged("HEAD /events HTTP/1.1\r\n\r\n", 0, response);
  EXPECT_EQ(head.exchange.events, nullptr);
  EXPECT_THAT(head.answer().head, HasSubstr("Content-Type: text/event-stream"));
}

}  // namespace
}  // namespace keelson
