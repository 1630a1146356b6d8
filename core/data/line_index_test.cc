#include "core/data/line_index.h"

#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kIndexedPath[] = "/data";
constexpr int64_t kGroup = LineIndex::kLinesPerOffset;

class LineIndexTest : public testing::Test {
 protected:
  absl::StatusOr<LineIndex> Build(const std::string& content) {
    files_.SetContent(kIndexedPath, content);
    return BuildLineIndex(**files_.OpenForRead(kIndexedPath));
  }

  MemoryFileSystem files_;
};

TEST_F(LineIndexTest, TheLastLineMayHaveNoEnd) {
  EXPECT_EQ(Build("a\nbc\n")->num_lines, 2);
  EXPECT_EQ(Build("a\nbc")->num_lines, 2);
  EXPECT_THAT(Build("a\nbc")->offsets, ElementsAre(0, 4));
  EXPECT_EQ(Build("\n\n")->num_lines, 2);
  EXPECT_EQ(Build("")->num_lines, 0);
  EXPECT_THAT(Build("")->offsets, ElementsAre(0));
}

TEST_F(LineIndexTest, AByteOrderMarkIsNoPartOfTheFirstLine) {
  EXPECT_THAT(Build("\xef\xbb\xbf"
                    "a\nb\n")
                  ->offsets,
              ElementsAre(3, 7));
  EXPECT_EQ(Build("\xef\xbb\xbf")->num_lines, 0);
}

TEST_F(LineIndexTest, OneOffsetForSomeLines) {
  std::string content;
  std::vector<uint64_t> offsets;
  // Longer than the pieces in which a file is read.
  for (int64_t line = 0; line < 200'000 * kGroup / 16 + 5; ++line) {
    if (line % kGroup == 0) offsets.push_back(content.size());
    content += std::string(line % 23, 'x') + "\n";
  }
  offsets.push_back(content.size());
  EXPECT_EQ(Build(content)->offsets, offsets);
}

TEST_F(LineIndexTest, ALineIsNotEndless) {
  std::string content = "a\nb\n" + std::string(LineIndex::kMaxLineBytes, 'x');
  EXPECT_TRUE(Build(content).ok());
  content += "x";
  const absl::Status status = Build(content).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/data:3: expected a line of at most"));
  EXPECT_EQ(Build(content + "\nb\n").status().code(), absl::StatusCode::kDataLoss);
}

LineIndex SomeIndex() { return {kGroup + 2, {0, 100, 120}, {3, kGroup}, 77}; }
constexpr FileVersion kVersion = {120, -5};

TEST_F(LineIndexTest, AStoredIndexIsReadAgain) {
  EXPECT_EQ(DecodeLineIndex(EncodeLineIndex(SomeIndex(), kVersion), kVersion), SomeIndex());
  ASSERT_TRUE(StoreLineIndex(kIndexedPath, SomeIndex(), kVersion, &files_).ok());
  EXPECT_EQ(LoadLineIndex(kIndexedPath, kVersion, &files_), SomeIndex());
  EXPECT_EQ(LoadLineIndex("/other", kVersion, &files_), std::nullopt);
}

TEST_F(LineIndexTest, AnIndexOfAnotherVersionIsNone) {
  const std::string bytes = EncodeLineIndex(SomeIndex(), kVersion);
  EXPECT_EQ(DecodeLineIndex(bytes, {121, -5}), std::nullopt);
  EXPECT_EQ(DecodeLineIndex(bytes, {120, -4}), std::nullopt);
}

TEST_F(LineIndexTest, ADamagedIndexIsNone) {
  const std::string bytes = EncodeLineIndex(SomeIndex(), kVersion);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(DecodeLineIndex(bytes.substr(0, i), kVersion), std::nullopt);
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(DecodeLineIndex(changed, kVersion), std::nullopt) << i;
  }
}

TEST_F(LineIndexTest, AnIndexThatNoFileHasIsNone) {
  const auto expect_none = [](const LineIndex& index) {
    EXPECT_EQ(DecodeLineIndex(EncodeLineIndex(index, kVersion), kVersion), std::nullopt);
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
