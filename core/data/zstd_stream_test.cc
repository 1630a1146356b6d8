#include "core/data/zstd_stream.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/data/byte_stream.h"
#include "core/data/idx_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr absl::string_view kZstdText = "a line of text\nand another one\n";
// Frames that a reader skips (RFC 8878, 3.1.2): a magic number, a size, bytes.
constexpr absl::string_view kSkippable("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);

class ZstdStreamTest : public testing::Test {
 protected:
  // Reads `size` bytes in pieces, and finishes.
  absl::StatusOr<std::string> Read(const std::string& packed, size_t size, size_t piece = 1000) {
    MemoryFileSystem files;
    files.SetContent("/x.zst", packed);
    auto stream = OpenByteStream("/x.zst", &files);
    if (!stream.ok()) return stream.status();
    std::string content;
    while (content.size() < size) {
      const size_t want = std::min(piece, size - content.size()), done = content.size();
      content.resize(done + want);
      const absl::StatusOr<size_t> n = (*stream)->Read(want, content.data() + done);
      if (!n.ok()) return n.status();
      content.resize(done + *n);
      if (*n < want) break;
    }
    const absl::Status finished = (*stream)->Finish();
    if (!finished.ok()) return finished;
    return content;
  }
  void ExpectError(const std::string& packed, const std::string& message,
                   size_t size = kZstdText.size()) {
    EXPECT_EQ(Read(packed, size).status(), absl::DataLossError(absl::StrCat("/x.zst: ", message)));
  }

  const std::string text_{kZstdText};
  const std::string packed_ = ZstdContent(text_);
};

TEST_F(ZstdStreamTest, ReadsContent) {
  EXPECT_EQ(*Read(packed_, text_.size()), text_);
  EXPECT_EQ(*Read(packed_, 1'000'000), text_);
  EXPECT_EQ(*Read(ZstdContent(""), 7), "");
}

TEST_F(ZstdStreamTest, ReadsManyPieces) {
  std::string content;
  for (uint32_t i = 0; content.size() < 5'000'000; ++i) {
    absl::StrAppend(&content, i * 2654435761u, "\n");
  }
  const std::string packed = ZstdContent(content);
  for (const size_t piece : {size_t{4096}, content.size()}) {
    EXPECT_TRUE(*Read(packed, content.size(), piece) == content);
  }
  // Which expands a lot: most of it is still to be had when the last byte of the file is read.
  const std::string equal(5'000'000, 'x');
  EXPECT_TRUE(*Read(ZstdContent(equal), equal.size()) == equal);
}

TEST_F(ZstdStreamTest, FramesOneAfterTheOtherAreOneContent) {
  const std::string skipped(kSkippable);
  const std::string packed = skipped + ZstdContent(text_.substr(0, 9)) + ZstdContent("") + skipped +
                             ZstdContent(text_.substr(9)) + skipped;
  for (const size_t piece : {1, 9, 1000}) EXPECT_EQ(*Read(packed, text_.size(), piece), text_);
  EXPECT_EQ(*Read(packed, 1000), text_);
}

TEST_F(ZstdStreamTest, EveryTruncation) {
  for (size_t size = 0; size < packed_.size(); ++size) {
    ExpectError(packed_.substr(0, size), "zstd stream is cut off before its end");
    ExpectError(packed_.substr(0, size), "zstd stream is cut off before its end", 1'000'000);
  }
  ExpectError(packed_ + packed_.substr(0, 10), "zstd stream is cut off before its end", 1000);
}

TEST_F(ZstdStreamTest, WrongChecksum) {
  std::string damaged = packed_;
  damaged.back() ^= 1;
  ExpectError(damaged, "not a valid zstd stream: Restored data doesn't match checksum");
}

TEST_F(ZstdStreamTest, DamagedBlock) {
  std::string damaged = packed_;
  damaged[6] |= 6;  // the block's type is the one that is reserved
  ExpectError(damaged, "not a valid zstd stream: Data corruption detected");
}

TEST_F(ZstdStreamTest, AnotherFormat) {
  ExpectError(text_, "not a valid zstd stream: Unknown frame descriptor");
  ExpectError(GzipContent(text_), "not a valid zstd stream: Unknown frame descriptor");
}

TEST_F(ZstdStreamTest, TrailingBytes) {
  const std::string message = "trailing bytes: expected the end after 31 bytes";
  ExpectError(packed_ + "something else", message);
  ExpectError(packed_ + "something else", message, 1000);
  ExpectError(ZstdContent(text_ + "more"), message);
}

TEST_F(ZstdStreamTest, AWindowThatIsTooLarge) {
  // A frame without a size, whose window is 256 MiB, and an empty last block.
  ExpectError(std::string("\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00", 9),
              "not a valid zstd stream: Frame requires too much memory for decoding");
}

TEST_F(ZstdStreamTest, NamesOfPackedFiles) {
  EXPECT_EQ(WithoutPackedSuffix("a.tsv.zst"), "a.tsv");
  EXPECT_EQ(WithoutPackedSuffix("a.tsv.gz"), "a.tsv");
  EXPECT_EQ(WithoutPackedSuffix("a.gz.zst"), "a.gz");
  EXPECT_EQ(WithoutPackedSuffix("zst"), "zst");
  EXPECT_TRUE(HasPackedSuffix("a.zst"));
  EXPECT_FALSE(HasPackedSuffix("a.zst.csv"));
}

}  // namespace
}  // namespace keelson
