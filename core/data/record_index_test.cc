#include "core/data/record_index.h"

#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr char kIndexedPath[] = "/data";
constexpr int64_t kGroup = RecordIndex::kRecordsPerOffset;

class RecordIndexTest : public testing::Test {
 protected:
  MemoryFileSystem files_;
};

RecordIndex SomeIndex() { return {kGroup + 2, {0, 100, 120}, {3, kGroup}, 77}; }
constexpr FileVersion kVersion = {120, -5};

TEST_F(RecordIndexTest, AStoredIndexIsReadAgain) {
  EXPECT_EQ(DecodeRecordIndex(EncodeRecordIndex(SomeIndex(), kVersion), kVersion), SomeIndex());
  ASSERT_TRUE(StoreRecordIndex(kIndexedPath, SomeIndex(), kVersion, &files_).ok());
  EXPECT_EQ(LoadRecordIndex(kIndexedPath, kVersion, &files_), SomeIndex());
  EXPECT_EQ(LoadRecordIndex("/other", kVersion, &files_), std::nullopt);
}

TEST_F(RecordIndexTest, NamesOfIndexes) {
  EXPECT_TRUE(IsRecordIndex("day_0.keelson_lines"));
  EXPECT_TRUE(IsRecordIndex("a.tfrecord.keelson_records.tempstate123"));
  EXPECT_FALSE(IsRecordIndex("a.tfrecord"));
}

TEST_F(RecordIndexTest, AnIndexOfAnotherVersionIsNone) {
  const std::string bytes = EncodeRecordIndex(SomeIndex(), kVersion);
  EXPECT_EQ(DecodeRecordIndex(bytes, {121, -5}), std::nullopt);
  EXPECT_EQ(DecodeRecordIndex(bytes, {120, -4}), std::nullopt);
}

TEST_F(RecordIndexTest, ADamagedIndexIsNone) {
  const std::string bytes = EncodeRecordIndex(SomeIndex(), kVersion);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(DecodeRecordIndex(bytes.substr(0, i), kVersion), std::nullopt);
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(DecodeRecordIndex(changed, kVersion), std::nullopt) << i;
  }
}

TEST_F(RecordIndexTest, AnIndexThatNoFileHasIsNone) {
  const auto expect_none = [](const RecordIndex& index) {
    EXPECT_EQ(DecodeRecordIndex(EncodeRecordIndex(index, kVersion), kVersion), std::nullopt);
  };
  expect_none({2 * kGroup + 1, {0, 100, 120}});  // too many lines for two offsets
  expect_none({kGroup, {0, 100, 120}});          // too few
  expect_none({kGroup + 2, {0, 120, 120}});      // a group of lines without a byte
  expect_none({kGroup + 2, {0, 130, 120}});
  expect_none({kGroup + 2, {0, 100, 119}});  // not the end of the file
  expect_none({kGroup + 2, {0, 100, 120}, {kGroup + 2}});
  expect_none({kGroup + 2, {0, 100, 120}, {2, 2}});
  expect_none({kGroup + 2, {0, 100, 120}, {-1}});
}

}  // namespace
}  // namespace keelson
