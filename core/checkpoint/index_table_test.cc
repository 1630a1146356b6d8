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

}  // namespace
}  // namespace keelson
