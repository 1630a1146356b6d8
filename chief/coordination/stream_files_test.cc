#include "chief/coordination/stream_files.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Texts(const std::vector<v1::StreamFile>& files) {
  std::vector<std::string> texts;
  for (const v1::StreamFile& file : files) {
    texts.push_back(absl::StrCat(file.name(), " ", file.begin(), "-", file.end()));
  }
  return texts;
}

StreamFiles ThreeFiles() {
  StreamFiles files;
  files.Add("a", 10);
  files.Add("b", 5);
  files.Add("c", 100);
  return files;
}

TEST(StreamFilesTest, RecordsAreNumberedAsFilesCome) {
  StreamFiles files;
  EXPECT_EQ(files.known(), 0);
  EXPECT_EQ(files.newest(), "");
  files = ThreeFiles();
  EXPECT_EQ(files.known(), 115);
  EXPECT_EQ(files.newest(), "c");
  EXPECT_THAT(Texts(files.From(0)), ElementsAre("a 0-10", "b 10-15", "c 15-115"));
}

TEST(StreamFilesTest, ABatchHasTheFilesOfItsRecords) {
  const StreamFiles files = ThreeFiles();
  std::vector<v1::StreamFile> found;
  files.AddFilesOf({0, 8, 16}, &found);
  EXPECT_THAT(Texts(found), ElementsAre("a 0-10", "b 10-15", "c 15-115"));
  files.AddFilesOf({0, 16, 24}, &found);
  EXPECT_EQ(found.size(), 3u);
  found.clear();
  files.AddFilesOf({0, 10, 15}, &found);
  EXPECT_THAT(Texts(found), ElementsAre("b 10-15"));
  found.clear();
  files.AddFilesOf({0, 115, 120}, &found);
  EXPECT_THAT(found, IsEmpty());
}

TEST(StreamFilesTest, FilesThatAreDoneAreForgottenButTheNewestOne) {
  StreamFiles files = ThreeFiles();
  EXPECT_THAT(Texts(files.From(10)), ElementsAre("b 10-15", "c 15-115"));
  EXPECT_THAT(Texts(files.From(115)), ElementsAre("c 15-115"));
  files.ForgetBefore(14);
  EXPECT_THAT(Texts(files.From(0)), ElementsAre("b 10-15", "c 15-115"));
  files.ForgetBefore(115);
  EXPECT_THAT(Texts(files.From(0)), ElementsAre("c 15-115"));
  EXPECT_EQ(files.known(), 115);
}

TEST(StreamFilesTest, AreRestored) {
  v1::JobState state;
  for (const v1::StreamFile& file : ThreeFiles().From(10)) *state.add_stream_files() = file;
  StreamFiles files;
  ASSERT_EQ(files.Restore(state), absl::OkStatus());
  files.Add("d", 1);
  EXPECT_THAT(Texts(files.From(0)), ElementsAre("b 10-15", "c 15-115", "d 115-116"));
}

TEST(StreamFilesTest, FilesThatAreNotOneBehindTheOther) {
  v1::JobState state;
  for (const v1::StreamFile& file : ThreeFiles().From(0)) *state.add_stream_files() = file;
  state.mutable_stream_files(1)->set_begin(11);
  StreamFiles files;
  EXPECT_EQ(files.Restore(state),
            absl::DataLossError("_keelson/job: stream_files[1] b: expected records [10, more), "
                                "found [11, 15)"));
  state.mutable_stream_files(1)->set_begin(10);
  state.mutable_stream_files(1)->set_end(10);
  EXPECT_TRUE(absl::IsDataLoss(files.Restore(state)));
}

}  // namespace
}  // namespace keelson
