// Any damage of a bundle's files is found and reported with the file's name, and never causes a
// crash.
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_contents.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/index_table.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class BundleDamageTest : public testing::Test {
 protected:
  void SetUp() override { WriteSmallBundle(prefix_); }

  absl::Status OpenAndVerify() const {
    auto reader = BundleReader::Open(prefix_);
    return reader.ok() ? (*reader)->VerifyAll() : reader.status();
  }
  void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& text) {
    ASSERT_EQ(status.code(), code) << status;
    ASSERT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const std::string prefix_ = JoinPath(FreshDirectory(), "model.ckpt-100");
  const std::string part0_ = DataPath(prefix_, 0, 2);
  const std::string part1_ = DataPath(prefix_, 1, 2);
};

TEST_F(BundleDamageTest, EveryChangedByteOfTheDataIsFound) {
  for (const std::string& path : {part0_, part1_}) {
    const std::string good = ReadRawFile(path);
    for (size_t i = 0; i < good.size(); ++i) {
      WriteRawFile(path, Flipped(good, i, static_cast<int>(i % 8)));
      ExpectError(OpenAndVerify(), absl::StatusCode::kDataLoss, path + ": tensor '");
    }
    WriteRawFile(path, good);
  }
  EXPECT_TRUE(OpenAndVerify().ok());
}

TEST_F(BundleDamageTest, EveryChangedByteOfTheIndexIsFound) {
  const std::string path = IndexPath(prefix_);
  const std::string good = ReadRawFile(path);
  for (size_t i = 0; i < good.size(); ++i) {
    WriteRawFile(path, Flipped(good, i, static_cast<int>(i % 8)));
    ExpectError(OpenAndVerify(), absl::StatusCode::kDataLoss, path);
  }
}

// Its checksums are valid.
TEST_F(BundleDamageTest, AnIndexThatClaimsHugeBlocksIsNotOpened) {
  const std::string path = IndexPath(prefix_);
  for (const uint64_t size : {~uint64_t{0} - 4, uint64_t{1} << 63, uint64_t{1} << 36}) {
    WriteRawFile(path, TableWith({TableBlock(TableEntries({}))}, {TableHandle(0, size)}));
    ExpectError(BundleReader::Open(prefix_).status(), absl::StatusCode::kDataLoss,
                path + ": damaged index: a block of entries: expected it in bytes [0, 13), found " +
                    std::to_string(size) + " bytes from 0");
  }
}

TEST_F(BundleDamageTest, TensorsDoNotShareBytes) {
  auto writer = NewWriter(prefix_, 0, 1);
  ASSERT_TRUE(writer->AddTensor("a", Shape({4}), Iota(4)).ok());
  ASSERT_TRUE(writer->AddTensor("b", Shape({4}), Iota(4)).ok());
  std::vector<BundleIndexEntry> entries;
  AppendEntries(writer.get(), &entries);
  entries[1].entry.set_offset(12);
  ExpectError(WriteBundleIndex(FileSystem::Real(), prefix_, 1, entries),
              absl::StatusCode::kInvalidArgument,
              "tensor 'b': bytes from 12 of data file 0 are also those of 'a'");
  IndexTable index = {{kHeaderKey, "\x08\x01"}};
  for (const BundleIndexEntry& entry : entries) index[entry.key] = entry.entry.SerializeAsString();
  ASSERT_TRUE(WriteIndexTable(FileSystem::Real(), IndexPath(prefix_), index).ok());
  ExpectError(BundleReader::Open(prefix_).status(), absl::StatusCode::kDataLoss,
              IndexPath(prefix_) + ": tensor 'b': bytes from 12 of data file 0");
}

TEST_F(BundleDamageTest, TruncatedOrLongerDataIsFoundWhenOpening) {
  const std::string good = ReadRawFile(part1_);
  for (const std::string& content : {good.substr(0, good.size() - 1), std::string(), good + "x"}) {
    WriteRawFile(part1_, content);
    ExpectError(BundleReader::Open(prefix_).status(), absl::StatusCode::kDataLoss,
                part1_ + ": has " + std::to_string(content.size()) + " bytes, expected " +
                    std::to_string(good.size()));
  }
}

TEST_F(BundleDamageTest, MissingFilesAreNotFound) {
  ASSERT_TRUE(RemoveFile(part0_).ok());
  ExpectError(BundleReader::Open(prefix_).status(), absl::StatusCode::kNotFound, part0_);
  ASSERT_TRUE(RemoveFile(IndexPath(prefix_)).ok());
  ExpectError(BundleReader::Open(prefix_).status(), absl::StatusCode::kNotFound,
              IndexPath(prefix_));
}

TEST_F(BundleDamageTest, APartialReadVerifiesTheWholeSlice) {
  // The last row of the first slice; rows 0-1 are asked for.
  WriteRawFile(part0_, Flipped(ReadRawFile(part0_), 47));
  auto reader = BundleReader::Open(prefix_);
  ASSERT_TRUE(reader.ok());
  std::vector<float> rows(6);
  ExpectError((*reader)->ReadElements("w", 0, absl::MakeSpan(rows)), absl::StatusCode::kDataLoss,
              part0_ + ": tensor 'w' in bytes [0, 48): checksum mismatch");
}

TEST_F(BundleDamageTest, WhatIsNotDamagedStaysReadable) {
  WriteRawFile(part0_, Flipped(ReadRawFile(part0_), 0));
  auto reader = BundleReader::Open(prefix_);
  ASSERT_TRUE(reader.ok());
  std::vector<float> rows(6);
  EXPECT_TRUE((*reader)->ReadElements("w", 12, absl::MakeSpan(rows)).ok());
  EXPECT_TRUE((*reader)->ReadInt64("global_step").ok());
  EXPECT_FALSE((*reader)->ReadTensor("w").ok());
}

TEST_F(BundleDamageTest, AFileCutWhileOpenIsDataLoss) {
  auto reader = BundleReader::Open(prefix_);
  ASSERT_TRUE(reader.ok());
  WriteRawFile(part1_, "");
  ExpectError((*reader)->ReadTensor("b").status(), absl::StatusCode::kDataLoss,
              part1_ + ": tensor 'b'");
  ExpectError((*reader)->ReadString("state").status(), absl::StatusCode::kDataLoss,
              part1_ + ": tensor 'state'");
}

TEST_F(BundleDamageTest, DamagedStringsAreNotReturned) {
  const std::string good = ReadRawFile(part1_);
  WriteRawFile(part1_, Flipped(good, good.size() - 1));
  auto reader = BundleReader::Open(prefix_);
  ASSERT_TRUE(reader.ok());
  ExpectError((*reader)->ReadString("state").status(), absl::StatusCode::kDataLoss,
              "tensor 'state'");
}

}  // namespace
}  // namespace keelson
