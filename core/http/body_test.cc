#include "core/http/body.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

// Hands out a few bytes at a time.
class TextStream : public HttpStream {
 public:
  explicit TextStream(std::string text) : text_(std::move(text)) {}
  size_t Read(char* out, size_t size) override {
    const size_t count = std::min({size, size_t{3}, text_.size()});
    std::copy_n(text_.data(), count, out);
    text_.erase(0, count);
    return count;
  }
  bool Write(absl::string_view) override { return false; }
  const std::string& left() const { return text_; }

 private:
  std::string text_;
};

int ReadChunked(const std::string& text, int64_t max_bytes, std::string* body) {
  TextStream stream(text);
  return ReadBody({.chunked = true, .length = 0}, max_bytes, &stream, body);
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

TEST(ReadBody, ReadsALengthAndNoMore) {
  TextStream stream("0123456789rest");
  std::string body;
  EXPECT_EQ(ReadBody({.chunked = false, .length = 10}, 100, &stream, &body), 200);
  EXPECT_EQ(body, "0123456789");
  EXPECT_EQ(stream.left(), "rest");
  EXPECT_EQ(ReadBody({.chunked = false, .length = 10}, 100, &stream, &body), 400);
}

TEST(ReadBody, JoinsChunks) {
  std::string body;
  EXPECT_EQ(
      ReadChunked("5\r\n01234\r\nA;name=x\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", 15, &body),
      200);
  EXPECT_EQ(body, "012340123456789");
}

TEST(ReadBody, RefusesTooManyBytesInChunks) {
  std::string body;
  EXPECT_EQ(ReadChunked("5\r\n01234\r\n5\r\n01234\r\n0\r\n\r\n", 9, &body), 413);
  body.clear();
  EXPECT_EQ(ReadChunked("ffffffffffffffff\r\n", 9, &body), 413);
}

TEST(ReadBody, RefusesChunksThatMakeNoSense) {
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
