#include "core/http/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(HttpRequest, GivesParametersByName) {
  HttpRequest request;
  request.query = {{"name", "a"}, {"points", ""}, {"name", "b"}};
  EXPECT_EQ(request.Parameter("name"), "a");
  EXPECT_EQ(request.Parameter("points"), "");
  EXPECT_EQ(request.Parameter("x"), std::nullopt);
  EXPECT_THAT(request.Parameters("name"), ElementsAre("a", "b"));
  EXPECT_THAT(request.Parameters("x"), IsEmpty());
  request.headers = {{"host", "here"}};
  EXPECT_EQ(request.Header("host"), "here");
  EXPECT_EQ(request.Header("Host"), "");
}

TEST(JsonError, IsJsonWhateverTheMessage) {
  const HttpResponse response = JsonError(404, "no run \"a\\b\"\n");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body, "{\"error\": \"no run \\\"a\\\\b\\\"\\u000a\"}\n");
  EXPECT_EQ(JsonError(400, "ü€😀").body, "{\"error\": \"ü€😀\"}\n");
  // Overlong, a surrogate, beyond U+10FFFF, a lone byte, cut off.
  for (const char* bytes : {"\xc0\xae", "\xff", "\xe2\x82", "\xf5\x80\x80\x80"}) {
    EXPECT_THAT(JsonError(400, bytes).body, ::testing::HasSubstr("\\ufffd")) << bytes;
    EXPECT_EQ(JsonError(400, bytes).body.find(bytes), std::string::npos);
  }
  EXPECT_EQ(JsonError(400, "\xed\xa0\x80").body, "{\"error\": \"\\ufffd\\ufffd\\ufffd\"}\n");
}

TEST(ParseTarget, DecodesPathAndQuery) {
  const std::optional<HttpTarget> target =
      ParseTarget("/a%20b/%C3%BC?name=train%2Floss&name=x+y&flag&a=b=c&&bad=%zz%4#part");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, "/a b/ü");
  EXPECT_THAT(target->query, ElementsAre(Pair("name", "train/loss"), Pair("name", "x y"),
                                         Pair("flag", ""), Pair("a", "b=c"), Pair("bad", "%zz%4")));
  EXPECT_EQ(ParseTarget("/a+b")->path, "/a+b");
  EXPECT_EQ(ParseTarget("/%252e")->path, "/%2e");
}

TEST(ParseTarget, RefusesPathsThatMakeNoSense) {
  for (const char* target : {"", "*", "a", "http://host/", "/%", "/%4", "/%zz", "/%00", "/%0a",
                             "/%7f", "/a\x01", "?a=b"}) {
    EXPECT_FALSE(ParseTarget(target).has_value()) << target;
  }
}

}  // namespace
}  // namespace keelson
