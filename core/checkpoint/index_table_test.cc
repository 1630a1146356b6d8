#include "core/checkpoint/index_table.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IndexTable LargeTable() {
  IndexTable table = {{"", "header"}};
  for (int i = 0; i < 5000; ++i) table[absl::StrCat("key", i)] = std::string(100, 'v');
  return table;
}

TEST(IndexTableTest, ComesBackFromSeveralBlocks) {
  const std::string directory = FreshDirectory();
  const std::string path = JoinPath(directory, "m.index");
  ASSERT_TRUE(WriteIndexTable(FileSystem::Real(), path, LargeTable()).ok());
  const auto table = ReadIndexTable(FileSystem::Real(), path);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table, LargeTable());
  EXPECT_THAT(*ListDirectory(directory), ElementsAre("m.index"));
}

// Blocks of 256 KiB, each with the type byte 0 (no compression), end with the magic number.
TEST(IndexTableTest, LayoutIsTensorFlows) {
  const std::string path = JoinPath(FreshDirectory(), "m.index");
  ASSERT_TRUE(WriteIndexTable(FileSystem::Real(), path, {{"", "v"}}).ok());
  const std::string content = ReadRawFile(path);
  // Entry (shared 0, unshared 0, value 1), restart array [0], count 1, type.
  EXPECT_EQ(content.substr(0, 13), std::string("\0\0\1v\0\0\0\0\1\0\0\0\0", 13));
  EXPECT_EQ(content.substr(content.size() - 8), "\x57\xfb\x80\x8b\x24\x75\x47\xdb");
}

TEST(IndexTableTest, MissingFileIsNotFound) {
  const std::string path = JoinPath(FreshDirectory(), "none.index");
  const absl::Status status = ReadIndexTable(FileSystem::Real(), path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(IndexTableTest, AnIndexThatIsTooLargeIsNotRead) {
  const std::string path = JoinPath(FreshDirectory(), "m.index");
  ASSERT_TRUE(WriteIndexTable(FileSystem::Real(), path, {{"", "v"}}).ok());
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(ReadIndexTable(FileSystem::Real(), path).status(),
            absl::DataLossError(path + ": expected at most 1073741824 bytes, found 1099511627776"));
}

TEST(IndexTableTest, UnwritableDirectoryIsAnError) {
  const absl::Status status =
      WriteIndexTable(FileSystem::Real(), "/nonexistent/m.index", {{"", "v"}});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/m.index"));
}

void ExpectDamage(const std::string& path, const std::string& content, size_t where) {
  WriteRawFile(path, content);
  const absl::Status status = ReadIndexTable(FileSystem::Real(), path).status();
  ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << "byte " << where << ": " << status;
  ASSERT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(IndexTableTest, EveryChangedByteIsFound) {
  const std::string path = JoinPath(FreshDirectory(), "m.index");
  ASSERT_TRUE(
      WriteIndexTable(FileSystem::Real(), path, {{"", "header"}, {"b", "entry"}, {"w", "entry"}})
          .ok());
  const std::string good = ReadRawFile(path);
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int bit : {0, 3, 7}) ExpectDamage(path, Flipped(good, i, bit), i);
  }
}

TEST(IndexTableTest, DamageInALaterBlockIsFound) {
  const std::string path = JoinPath(FreshDirectory(), "m.index");
  ASSERT_TRUE(WriteIndexTable(FileSystem::Real(), path, LargeTable()).ok());
  const std::string good = ReadRawFile(path);
  ExpectDamage(path, Flipped(good, 300000), 300000);
}

TEST(IndexTableTest, EveryTruncationIsFound) {
  const std::string path = JoinPath(FreshDirectory(), "m.index");
  ASSERT_TRUE(WriteIndexTable(FileSystem::Real(), path, {{"", "header"}, {"w", "entry"}}).ok());
  const std::string good = ReadRawFile(path);
  for (size_t size = 0; size < good.size(); ++size) ExpectDamage(path, good.substr(0, size), size);
}

TEST(IndexTableTest, HugeHandleInTheFooterAllocatesNothing) {
  const std::string path = JoinPath(FreshDirectory(), "m.index");
  ASSERT_TRUE(WriteIndexTable(FileSystem::Real(), path, {{"", "header"}}).ok());
  std::string content = ReadRawFile(path);
  const std::string handle = std::string("\0", 1) + "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  content.replace(content.size() - 48, 20, handle + handle);
  ExpectDamage(path, content, content.size() - 48);
}

// Tables whose checksums are all valid.
class HostileIndexTableTest : public testing::Test {
 protected:
  absl::Status Read(const std::string& table) {
    WriteRawFile(path_, table);
    return ReadIndexTable(FileSystem::Real(), path_).status();
  }
  absl::Status Damaged(const std::string& what) const {
    return absl::DataLossError(path_ + ": damaged index: " + what);
  }
  // A table of one block.
  absl::Status ReadBlock(const std::string& block) {
    return Read(TableWith({block}, {TableHandle(0, block.size() - 5)}));
  }

  const std::string path_ = JoinPath(FreshDirectory(), "m.index");
  const std::string block_ = TableBlock(TableEntries({{"", "header"}, {"w", "entry"}}));
};

TEST_F(HostileIndexTableTest, TheHelpersMakeATable) {
  ASSERT_EQ(ReadBlock(block_), absl::OkStatus());
  EXPECT_EQ(*ReadIndexTable(FileSystem::Real(), path_),
            (IndexTable{{"", "header"}, {"w", "entry"}}));
}

TEST_F(HostileIndexTableTest, BlocksLieWithinTheFile) {
  ASSERT_EQ(block_.size(), 31u);
  for (const uint64_t size :
       {uint64_t{27}, uint64_t{1} << 36, uint64_t{1} << 63, ~uint64_t{0} - 4, ~uint64_t{0}}) {
    EXPECT_EQ(Read(TableWith({block_}, {TableHandle(0, size)})),
              Damaged(absl::StrCat("a block of entries: expected it in bytes [0, 31), found ", size,
                                   " bytes from 0")));
  }
  for (const uint64_t offset : {uint64_t{1}, uint64_t{32}, uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_EQ(Read(TableWith({block_}, {TableHandle(offset, 26)})),
              Damaged(absl::StrCat("a block of entries: expected it in bytes [0, 31), found 26 "
                                   "bytes from ",
                                   offset)));
  }
}

TEST_F(HostileIndexTableTest, BlocksDoNotOverlap) {
  const std::string handle = TableHandle(0, block_.size() - 5);
  EXPECT_EQ(Read(TableWith({block_}, {handle, handle})),
            Damaged("a block of entries: expected it in bytes [31, 31), found 26 bytes from 0"));
}

TEST_F(HostileIndexTableTest, WhatIsNoHandleIsNamed) {
  for (const std::string& handle :
       {std::string(), std::string("\0", 1), std::string(20, '\xff'), std::string(3, '\0')}) {
    EXPECT_EQ(Read(TableWith({block_}, {handle})).code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(Read(TableWith({block_}, {""})),
            Damaged("the index of blocks (17 bytes from 44): bad block handle"));
}

TEST_F(HostileIndexTableTest, EntriesLieWithinTheirBlock) {
  const std::string restarts("\0\0\0\0\1\0\0\0", 8);
  for (const std::string& entry :
       {std::string("\1\1\1wv"), std::string("\0\7\1wv", 5), std::string("\0\1\7wv", 5),
        std::string(1, '\0'), std::string(3, '\x80')}) {
    EXPECT_THAT(std::string(ReadBlock(TableBlock(entry + restarts)).message()),
                HasSubstr(": no entry in bytes [0, "));
  }
  EXPECT_EQ(ReadBlock(TableBlock("\xff\xff\xff\xff")),
            Damaged("a block of entries (4 bytes from 0): expected 4294967295 restart positions in "
                    "4 bytes"));
}

TEST_F(HostileIndexTableTest, KeysAreInOrder) {
  for (const auto& [first, second] : {std::pair("b", "a"), std::pair("a", "a")}) {
    const absl::Status status = ReadBlock(TableBlock(TableEntries({{first, ""}, {second, ""}})));
    EXPECT_THAT(std::string(status.message()), HasSubstr("key 'a' is out of order"));
  }
}

// Each of the keys repeats the 60,000 bytes of the first in 6 bytes of the file.
TEST_F(HostileIndexTableTest, CommonPrefixesDoNotMakeMuchOfALittle) {
  const std::string key(60000, 'k');
  std::string content = TableEntries({{key, ""}});
  content.resize(content.size() - 8);
  for (char c = 'a'; c <= 'z'; ++c) content += std::string("\xe0\xd4\x03\1\0", 5) + c;
  EXPECT_THAT(std::string(ReadBlock(TableBlock(content + std::string(4, '\0'))).message()),
              HasSubstr("entries take more memory than 16 times the file's size"));
}

TEST_F(HostileIndexTableTest, CompressedBlocksDoNotClaimMoreThanTheyCanHold) {
  EXPECT_EQ(ReadBlock(TableBlock("\xff\xff\xff\xff\x0f", 1)),
            Damaged("a block of entries (5 bytes from 0): expected at most 110 bytes when "
                    "uncompressed, found 4294967295"));
  for (const char* bytes : {"", "\x80", "\5", "\5\xff\xff"}) {
    EXPECT_EQ(ReadBlock(TableBlock(bytes, 1)).code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(ReadBlock(TableBlock("", 7)),
            Damaged("a block of entries (0 bytes from 0): expected compression type 0 (none) or 1 "
                    "(snappy), found 7"));
}

}  // namespace
}  // namespace keelson
