#include "core/http/request_reader.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

constexpr char kPost[] = "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody";

TEST(RequestReader, EndsWithTheLastByte) {
  for (const char* request :
       {"GET / HTTP/1.1\r\nHost: here\r\n\r\n", kPost,
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"}) {
    RequestReader reader(10);
    EXPECT_FALSE(reader.begun());
    const std::string bytes = request;
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_FALSE(reader.ended()) << bytes.substr(0, i);
      reader.Add(bytes.substr(i, 1));
      EXPECT_TRUE(reader.begun());
    }
    EXPECT_TRUE(reader.ended()) << bytes;
    EXPECT_TRUE(reader.whole());
  }
}

TEST(RequestReader, GivesHeadAndBody) {
  RequestReader reader(10);
  reader.Add(absl::StrCat(kPost, "beyond the end"));
  const ReceivedRequest request = reader.Take();
  EXPECT_EQ(request.head, "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(request.body, "body");
  EXPECT_EQ(request.body_status, 200);
}

TEST(RequestReader, WhatDoesNotComeStaysMissing) {
  RequestReader reader(10);
  reader.Add("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbo");
  EXPECT_TRUE(reader.has_head());
  EXPECT_FALSE(reader.ended());
  reader.End();
  EXPECT_TRUE(reader.ended());
  EXPECT_FALSE(reader.whole());
  EXPECT_EQ(reader.Take().body_status, 400);
}

TEST(RequestReader, WaitsForNothingOfWhatIsRefused) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\n"), std::string("hello\r\n\r\n"),
        std::string("PUT / HTTP/1.1\r\nContent-Length: 4\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
        std::string(kMaxHeadBytes, 'a'), std::string(kMaxHeadBytes + 1, 'a'),
        absl::StrCat("GET / HTTP/1.1\r\nX: ", std::string(kMaxHeadBytes, 'a'))}) {
    RequestReader reader(10);
    reader.Add(bytes);
    EXPECT_TRUE(reader.ended()) << bytes;
    EXPECT_FALSE(reader.whole()) << bytes;
    EXPECT_LE(reader.Take().head.size(), kMaxHeadBytes);
  }
}

TEST(RequestReader, InvitesOnlyBodiesThatItTakes) {
  const std::string post = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: ";
  RequestReader reader(10);
  reader.Add(post);
  EXPECT_FALSE(reader.awaits_continue());
  reader.Add("2\r\n\r\n");
  EXPECT_TRUE(reader.awaits_continue());
  reader.Add("{}");
  EXPECT_FALSE(reader.awaits_continue());
  RequestReader refused(10);
  refused.Add(post + "11\r\n\r\n");
  EXPECT_FALSE(refused.awaits_continue());
  RequestReader plain(10);
  plain.Add("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n");
  EXPECT_FALSE(plain.awaits_continue());
}

}  // namespace
}  // namespace keelson
