#include "core/http/body.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

// Gives the reader `text`, a few bytes at a time; returns its status.
int ReadInPieces(absl::string_view text, BodyReader* reader) {
  for (; !text.empty(); text.remove_prefix(std::min<size_t>(3, text.size()))) {
    reader->Add(text.substr(0, 3));
  }
  return reader->status();
}

int ReadChunked(const std::string& text, int64_t max_bytes, std::string* body) {
  BodyReader reader({.chunked = true, .length = 0}, max_bytes);
  const int status = ReadInPieces(text, &reader);
  BodyReader at_once({.chunked = true, .length = 0}, max_bytes);
  at_once.Add(text);
  EXPECT_EQ(at_once.status(), status) << text;
  EXPECT_EQ(at_once.bytes(), reader.bytes()) << text;
  *body = reader.bytes();
  return status;
}

TEST(FrameBody, TakesALengthOrChunks) {
  BodyFraming framing;
  EXPECT_EQ(FrameBody({}, 10, &framing), 200);
  EXPECT_EQ(framing.length, 0);
  EXPECT_FALSE(framing.chunked);
  EXPECT_EQ(FrameBody({{"10", "10"}, {}}, 10, &framing), 200);
  EXPECT_EQ(framing.length, 10);
  EXPECT_EQ(FrameBody({{}, {"Chunked"}}, 10, &framing), 200);
  EXPECT_TRUE(framing.chunked);
}

TEST(FrameBody, RefusesWhatIsAmbiguousTooLongOrUnknown) {
  BodyFraming framing;
  for (const char* length : {"", "-1", "+1", "1.0", "0x10", "ten", "1 2", " 1"}) {
    EXPECT_EQ(FrameBody({{length}, {}}, 10, &framing), 400) << length;
  }
  EXPECT_EQ(FrameBody({{"3", "4"}, {}}, 10, &framing), 400);
  EXPECT_EQ(FrameBody({{"3"}, {"chunked"}}, 10, &framing), 400);
  EXPECT_EQ(FrameBody({{"11"}, {}}, 10, &framing), 413);
  EXPECT_EQ(FrameBody({{"99999999999999999999"}, {}}, 10, &framing), 413);
  EXPECT_EQ(FrameBody({{}, {"gzip, chunked"}}, 10, &framing), 501);
  EXPECT_EQ(FrameBody({{}, {"chunked", "chunked"}}, 10, &framing), 501);
}

TEST(BodyReader, ReadsALengthAndNoMore) {
  BodyReader reader({.chunked = false, .length = 10}, 100);
  EXPECT_EQ(ReadInPieces("012345678", &reader), 400);
  EXPECT_FALSE(reader.ended());
  EXPECT_EQ(ReadInPieces("9rest", &reader), 200);
  EXPECT_TRUE(reader.ended());
  EXPECT_EQ(reader.bytes(), "0123456789");
  BodyReader none({}, 100);
  EXPECT_TRUE(none.ended());
  EXPECT_EQ(none.status(), 200);
}

TEST(BodyReader, JoinsChunks) {
  std::string body;
  EXPECT_EQ(
      ReadChunked("5\r\n01234\r\nA;name=x\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", 15, &body),
      200);
  EXPECT_EQ(body, "012340123456789");
}

TEST(BodyReader, RefusesTooManyBytesInChunks) {
  std::string body;
  EXPECT_EQ(ReadChunked("5\r\n01234\r\n5\r\n01234\r\n0\r\n\r\n", 9, &body), 413);
  EXPECT_EQ(ReadChunked("ffffffffffffffff\r\n", 9, &body), 413);
}

TEST(BodyReader, RefusesChunksThatMakeNoSense) {
  for (const std::string& text :
       {std::string("x\r\n"), std::string("\r\n\r\n"), std::string("-1\r\na\r\n"),
        std::string("0x1\r\na\r\n0\r\n\r\n"), std::string("fffffffffffffffff\r\n"),
        std::string("2\r\nabc\r\n0\r\n\r\n"), std::string("3\r\nab"), std::string("1\na\n0\n\n"),
        std::string("0\r\n"), absl::StrCat(std::string(300, '0'), "\r\n\r\n"),
        absl::StrCat("0\r\n", std::string(300, 'a'), "\r\n\r\n")}) {
    std::string body;
    EXPECT_EQ(ReadChunked(text, 100, &body), 400) << text;
  }
  std::string trailers = "0\r\n";
  for (int i = 0; i < 100; ++i) trailers += "a: b\r\n";
  std::string body;
  EXPECT_EQ(ReadChunked(trailers + "\r\n", 100, &body), 400);
}

}  // namespace
}  // namespace keelson
