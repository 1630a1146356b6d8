#include "core/data/record_framing.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kGroupSize = RecordIndex::kRecordsPerOffset;

class RecordFramingTest : public testing::Test {
 protected:
  absl::StatusOr<RecordIndex> IndexOf(const RecordFraming& framing, const std::string& content) {
    files_.SetContent("/data", content);
    return framing.BuildIndex(**files_.OpenForRead("/data"));
  }
  absl::StatusOr<RecordIndex> Lines(const std::string& content) {
    return IndexOf(LineFraming(), content);
  }
  absl::StatusOr<RecordIndex> TfRecords(const std::string& content) {
    return IndexOf(TfRecordFraming(), content);
  }
  std::string TfRecordError(const std::string& content) {
    const absl::Status status = TfRecords(content).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  }

  MemoryFileSystem files_;
};

TEST_F(RecordFramingTest, TheLastLineMayHaveNoEnd) {
  EXPECT_EQ(Lines("a\nbc\n")->num_records, 2);
  EXPECT_EQ(Lines("a\nbc")->num_records, 2);
  EXPECT_THAT(Lines("a\nbc")->offsets, ElementsAre(0, 4));
  EXPECT_EQ(Lines("\n\n")->num_records, 2);
  EXPECT_EQ(Lines("")->num_records, 0);
  EXPECT_THAT(Lines("")->offsets, ElementsAre(0));
}

TEST_F(RecordFramingTest, AByteOrderMarkIsNoPartOfTheFirstLine) {
  EXPECT_THAT(Lines("\xef\xbb\xbf"
                    "a\nb\n")
                  ->offsets,
              ElementsAre(3, 7));
  EXPECT_EQ(Lines("\xef\xbb\xbf")->num_records, 0);
}

TEST_F(RecordFramingTest, OneOffsetForSomeLines) {
  std::string content;
  std::vector<uint64_t> offsets;
  // Longer than the pieces in which a file is read.
  for (int64_t line = 0; line < 200'000 * kGroupSize / 16 + 5; ++line) {
    if (line % kGroupSize == 0) offsets.push_back(content.size());
    content += std::string(line % 23, 'x') + "\n";
  }
  offsets.push_back(content.size());
  EXPECT_EQ(Lines(content)->offsets, offsets);
}

TEST_F(RecordFramingTest, ALineIsNotEndless) {
  std::string content = "a\nb\n" + std::string(RecordIndex::kMaxRecordBytes, 'x');
  EXPECT_TRUE(Lines(content).ok());
  content += "x";
  const absl::Status status = Lines(content).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/data:3: expected a line of at most"));
  EXPECT_EQ(Lines(content + "\nb\n").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(RecordFramingTest, OneOffsetForSomeTfRecords) {
  std::string content;
  std::vector<uint64_t> offsets;
  int64_t count = 0;
  // Longer than the pieces in which a file is read, and one record longer than a piece.
  for (; content.size() < (5 << 19); ++count) {
    if (count % kGroupSize == 0) offsets.push_back(content.size());
    content += EncodeTfRecord(std::string(count == 100 ? 5 << 18 : count % 230, 'x'));
  }
  offsets.push_back(content.size());
  const auto index = TfRecords(content);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->offsets, offsets);
  EXPECT_EQ(index->num_records, count);
  EXPECT_EQ(TfRecords("")->num_records, 0);
}

TEST_F(RecordFramingTest, DamagedFramesOfTfRecords) {
  const std::string first = EncodeTfRecord("abc");
  std::string content = first + EncodeTfRecord("defg");
  EXPECT_EQ(TfRecordError("some text that is no TFRecord"),
            "/data: record 1 at byte 0: expected a length that fits its checksum, found another "
            "one; is it a TFRecord file?");
  EXPECT_EQ(
      TfRecordError(absl::StrCat("\x1f\x8b", std::string(20, 'x'))),
      "/data: record 1 at byte 0: expected a TFRecord file, found a gzip file whose name does "
      "not end with \".gz\"");
  EXPECT_EQ(
      TfRecordError(absl::StrCat("\x28\xb5\x2f\xfd", std::string(20, 'x'))),
      "/data: record 1 at byte 0: expected a TFRecord file, found a zstd file whose name does "
      "not end with \".zst\"");
  EXPECT_EQ(TfRecordError(content.substr(0, first.size() + 5)),
            "/data: record 2 at byte 19: expected a length with its checksum, found the end of the "
            "file after 5 bytes");
  EXPECT_EQ(TfRecordError(content.substr(0, content.size() - 1)),
            "/data: record 2 at byte 19: expected 20 bytes, found the end of the file after 19");
  content[first.size()] ^= 1;
  EXPECT_EQ(TfRecordError(content),
            "/data: record 2 at byte 19: expected a length that fits its checksum, found another "
            "one");
  EXPECT_EQ(TfRecordError(EncodeTfRecord(std::string((16 << 20) + 1, 'x'))),
            "/data: record 1 at byte 0: expected at most 16777216 bytes, found 16777217");
}

TEST_F(RecordFramingTest, TheFirstTfRecordOfSome) {
  const std::string content = EncodeTfRecord("abc") + EncodeTfRecord("d");
  auto frame = TfRecordFraming().First(content);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->record, "abc");
  EXPECT_EQ(frame->size, 19);
  EXPECT_TRUE(TfRecordFraming().IsSound(*frame));
  EXPECT_FALSE(TfRecordFraming().First(content.substr(0, 18)).has_value());
  EXPECT_FALSE(TfRecordFraming().First("").has_value());
  std::string damaged = content;
  damaged[13] ^= 1;
  frame = TfRecordFraming().First(damaged);
  ASSERT_TRUE(frame.has_value());
  EXPECT_FALSE(TfRecordFraming().IsSound(*frame));
}

}  // namespace
}  // namespace keelson
