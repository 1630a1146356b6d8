#include "core/data/record_file.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/base/failing_file_system_testing.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/idx_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr char kPath[] = "/lines";
constexpr uint64_t kIndexAlways = 0;

std::string LineText(int64_t line) { return absl::StrCat(line, std::string(line % 90, 'x')); }

std::string Lines(int64_t count) {
  std::string content;
  for (int64_t line = 0; line < count; ++line) absl::StrAppend(&content, LineText(line), "\n");
  return content;
}

std::string Read(const RecordFile& file, int64_t line) {
  RecordFile::Reader reader(&file);
  const auto text = reader.Record(line);
  EXPECT_TRUE(text.ok()) << text.status();
  return std::string(*text);
}

// A file that was written an hour ago, so that each change of it changes its time.
std::string WriteOldFile(const std::string& content) {
  const std::string path = JoinPath(FreshDirectory(), "lines");
  WriteTestFile(path, content);
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  return path;
}

TEST(RecordFileTest, ReadsLinesInAnyOrder) {
  constexpr int64_t kLines = 1000;
  MemoryFileSystem files;
  files.SetContent(kPath, Lines(kLines));
  const auto file = RecordFile::Open(kPath, LineFraming(), &files);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->num_records(), kLines);
  RecordFile::Reader reader(file->get());
  // 7 and 613 have no common factor with 1000: each line once, also backwards.
  for (const int64_t stride : {1, 7, 613, 999}) {
    for (int64_t i = 0; i < kLines; ++i) {
      const int64_t line = i * stride % kLines;
      ASSERT_EQ(*reader.Record(line), LineText(line));
    }
  }
  EXPECT_EQ(*reader.Record(5), *reader.Record(5));
}

TEST(RecordFileTest, TheEndsOfLinesAreNotRead) {
  MemoryFileSystem files;
  files.SetContent(kPath,
                   "\xef\xbb\xbf"
                   "one\r\n\r\nthree\nfour");
  const auto file = RecordFile::Open(kPath, LineFraming(), &files);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Read(**file, 0), "one");
  EXPECT_EQ(Read(**file, 1), "");
  EXPECT_EQ(Read(**file, 2), "three");
  EXPECT_EQ(Read(**file, 3), "four");
}

// A packed file's name and content.
std::vector<std::pair<std::string, std::string>> Packed(const std::string& content) {
  return {{"lines.gz", GzipContent(content)}, {"lines.zst", ZstdContent(content)}};
}

TEST(RecordFileTest, ReadsPackedFiles) {
  for (const auto& [name, content] : Packed(Lines(50'000))) {
    const std::string path = JoinPath(FreshDirectory(), name);
    WriteTestFile(path, content);
    const auto file = RecordFile::Open(path, LineFraming());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->num_records(), 50'000);
    EXPECT_EQ(Read(**file, 49'999), LineText(49'999));
    EXPECT_EQ(Read(**file, 7), LineText(7));
  }
}

TEST(RecordFileTest, DamagedPackedFiles) {
  for (const auto& [name, content] : Packed(Lines(50'000))) {
    const std::string path = JoinPath(FreshDirectory(), name);
    WriteTestFile(path, content.substr(0, content.size() / 2));
    const absl::Status status = RecordFile::Open(path, LineFraming()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

TEST(RecordFileTest, AnEmptyFileIsAnError) {
  for (const char* content : {"", "\xef\xbb\xbf"}) {
    MemoryFileSystem files;
    files.SetContent(kPath, content);
    const absl::Status status = RecordFile::Open(kPath, LineFraming(), &files).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "/lines: expected one line or more, found an empty file");
  }
}

TEST(RecordFileTest, ADirectoryIsAnError) {
  EXPECT_EQ(RecordFile::Open(FreshDirectory(), LineFraming()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(RecordFileTest, OnlyThePartsThatAreNeededAreRead) {
  MemoryFileSystem files;
  files.SetContent(kPath, Lines(100'000));
  ASSERT_TRUE(RecordFile::Open(kPath, LineFraming(), &files, kIndexAlways).ok());
  const int64_t before = files.bytes_read();
  // The second one loads the index that the first one stored.
  const auto file = RecordFile::Open(kPath, LineFraming(), &files, kIndexAlways);
  EXPECT_EQ(Read(**file, 77'777), LineText(77'777));
  const auto index = static_cast<int64_t>((*files.OpenForRead("/lines.keelson_lines"))->size());
  EXPECT_LE(files.bytes_read() - before, index + RecordIndex::kRecordsPerOffset * 100);
  EXPECT_LE(index, 100'000);
}

TEST(RecordFileTest, SmallFilesHaveNoStoredIndex) {
  MemoryFileSystem files;
  files.SetContent(kPath, Lines(1000));
  ASSERT_TRUE(RecordFile::Open(kPath, LineFraming(), &files).ok());
  EXPECT_FALSE(*files.Exists("/lines.keelson_lines"));
}

TEST(RecordFileTest, AnIndexOfAnotherVersionIsBuiltAgain) {
  MemoryFileSystem files;
  files.SetContent(kPath, Lines(100));
  ASSERT_TRUE(RecordFile::Open(kPath, LineFraming(), &files, kIndexAlways).ok());
  files.SetContent(kPath, "x" + Lines(100));  // of another size and time
  const auto file = RecordFile::Open(kPath, LineFraming(), &files, kIndexAlways);
  EXPECT_EQ(Read(**file, 99), LineText(99));
  EXPECT_TRUE((*file)->CheckUnchanged().ok());
}

TEST(RecordFileTest, AReadOnlyDirectoryWillDo) {
  const std::string path = WriteOldFile(Lines(100));
  FailingFileSystem files;
  files.FailFrom(0);
  const auto file = RecordFile::Open(path, LineFraming(), &files, kIndexAlways);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(files.has_failed());
  EXPECT_EQ(Read(**file, 55), LineText(55));
}

TEST(RecordFileTest, BadLinesAreStoredWithTheIndex) {
  MemoryFileSystem files;
  files.SetContent(kPath, Lines(100));
  const auto first = RecordFile::Open(kPath, LineFraming(), &files, kIndexAlways);
  EXPECT_EQ((*first)->KnownBadRecords(9), std::nullopt);
  (*first)->StoreBadRecords({3, 50}, 9);
  const auto second = RecordFile::Open(kPath, LineFraming(), &files, kIndexAlways);
  EXPECT_THAT((*second)->KnownBadRecords(9), Optional(ElementsAre(3, 50)));
  EXPECT_EQ((*second)->KnownBadRecords(8), std::nullopt);
}

TEST(RecordFileTest, AFileThatIsWrittenAnewIsAnError) {
  const std::string path = WriteOldFile(Lines(1000));
  const auto file = RecordFile::Open(path, LineFraming());
  ASSERT_TRUE((*file)->CheckUnchanged().ok());
  std::ofstream(path) << Lines(1000);
  const absl::Status status = (*file)->CheckUnchanged();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": expected the file as it was"));
}

TEST(RecordFileTest, AFileThatIsCutOffIsAnErrorAndNoCrash) {
  const std::string path = WriteOldFile(Lines(1000));
  const auto file = RecordFile::Open(path, LineFraming());
  RecordFile::Reader reader(file->get());
  ASSERT_TRUE(reader.Record(0).ok());
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(reader.Record(900).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ((*file)->CheckUnchanged().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(RecordFileTest, AFileThatIsReplacedOrRemovedIsAnError) {
  const std::string path = WriteOldFile(Lines(1000));
  const auto file = RecordFile::Open(path, LineFraming());
  WriteTestFile(path + ".new", Lines(1000));
  ASSERT_TRUE(RenameFile(path + ".new", path).ok());
  EXPECT_EQ((*file)->CheckUnchanged().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(RemoveFile(path).ok());
  EXPECT_THAT(std::string((*file)->CheckUnchanged().message()), HasSubstr("found none"));
}

TEST(RecordFileTest, LinesThatHaveMovedAreAnError) {
  const std::string path = WriteOldFile(Lines(1000));
  const auto file = RecordFile::Open(path, LineFraming());
  std::ofstream(path) << std::string(100'000, 'x');  // in place: it stays the file that is open
  RecordFile::Reader reader(file->get());
  EXPECT_EQ(reader.Record(7).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace keelson
