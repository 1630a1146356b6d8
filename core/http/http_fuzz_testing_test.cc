#include "core/http/http_fuzz_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"

namespace keelson {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<HttpSample> Samples() {
  return {
      {"GET", "/api/v1/runs/mnist/series/data", {{"name", "train/loss"}, {"points", "100"}}, ""},
      {"POST", "/api/v1/runs/mnist/predict", {}, "{\"features\": [1, 2]}"}};
}

TEST(NastyRequests, AreTheSameForASeedAndDifferForOthers) {
  NastyRequests first(1, Samples()), again(1, Samples()), other(2, Samples());
  int differ = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = RequestBytes(first.Next());
    EXPECT_EQ(bytes, RequestBytes(again.Next()));
    differ += bytes != RequestBytes(other.Next()) ? 1 : 0;
  }
  EXPECT_GT(differ, 150);
}

TEST(NastyRequests, SpoilEveryPartAndKeepWhatTheServerGuarantees) {
  NastyRequests requests(1, Samples());
  std::set<std::string> paths, bodies, values, methods, headers;
  for (int i = 0; i < 5000; ++i) {
    const HttpRequest request = requests.Next();
    ASSERT_TRUE(absl::StartsWith(request.path, "/"));
    ASSERT_EQ(ParseTarget(RequestBytes(request).substr(
                              request.method.size() + 1,
                              RequestBytes(request).find(" HTTP/1.1") - request.method.size() - 1))
                  .value_or(HttpTarget())
                  .path,
              request.path);
    paths.insert(request.path);
    bodies.insert(request.body);
    methods.insert(request.method);
    for (const auto& [name, value] : request.query) values.insert(value);
    for (const auto& [name, value] : request.headers) headers.insert(name);
  }
  EXPECT_GT(paths.size(), 500u);
  EXPECT_GT(bodies.size(), 500u);
  EXPECT_THAT(paths, Contains(HasSubstr("/..")));
  EXPECT_THAT(values, Contains("nan"));
  EXPECT_THAT(values, Contains("../../../../etc/passwd"));
  EXPECT_THAT(bodies, Contains(HasSubstr("[[[[[")));
  EXPECT_EQ(methods.size(), 3u);
  EXPECT_THAT(headers, Contains("authorization"));
}

TEST(RequestBytes, EscapesWhatATargetCannotHold) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/a b/%";
  request.query = {{"x", "1&2"}, {"y", ""}};
  request.headers = {{"host", "here"}};
  request.body = "{}";
  EXPECT_EQ(RequestBytes(request),
            "POST /a%20b/%25?x=1%262&y= HTTP/1.1\r\nhost: here\r\nContent-Length: 2\r\n\r\n{}");
}

}  // namespace
}  // namespace keelson
