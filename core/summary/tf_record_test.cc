#include "core/summary/tf_record.h"

#include <fstream>

#include "absl/strings/escaping.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The record "abc", computed with another implementation of CRC-32C.
constexpr char kAbcHex[] = "0300000000000000b099490e6162636e57f121";

std::string WriteTemporary(const std::string& content) {
  const std::string path = JoinPath(FreshDirectory(), "records");
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

void ExpectDataLoss(const std::string& content, const std::string& text) {
  const std::string path = WriteTemporary(content);
  const absl::Status status = ReadTfRecords(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": record at byte " + text));
}

TEST(TfRecordTest, HandMadeBytes) {
  EXPECT_EQ(absl::BytesToHexString(EncodeTfRecord("abc")), kAbcHex);
  const auto records = ReadTfRecords(WriteTemporary(absl::HexStringToBytes(kAbcHex)));
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT(*records, ElementsAre("abc"));
}

TEST(TfRecordTest, SeveralRecordsAndEmptyOnes) {
  const std::string large(100000, 'x');
  const auto records = ReadTfRecords(
      WriteTemporary(EncodeTfRecord("") + EncodeTfRecord(large) + EncodeTfRecord("z")));
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT(*records, ElementsAre("", large, "z"));
}

TEST(TfRecordTest, EmptyFileHasNoRecords) {
  EXPECT_THAT(*ReadTfRecords(WriteTemporary("")), IsEmpty());
}

TEST(TfRecordTest, MissingFileIsNotFound) {
  EXPECT_EQ(ReadTfRecords("/nonexistent/records").status().code(), absl::StatusCode::kNotFound);
}

TEST(TfRecordTest, EveryChangedByteIsFound) {
  const std::string good = EncodeTfRecord("abc");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    ExpectDataLoss(good + bad, i < 12 ? "19: checksum mismatch of its length"
                                      : "19: checksum mismatch of its data");
  }
}

TEST(TfRecordTest, EveryTruncationIsFound) {
  const std::string good = EncodeTfRecord("abc");
  for (size_t size = 1; size < good.size(); ++size) {
    ExpectDataLoss(good + good.substr(0, size), "19: the file ends within its");
  }
}

}  // namespace
}  // namespace keelson
