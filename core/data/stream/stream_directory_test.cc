#include "core/data/stream/stream_directory.h"

#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class StreamDirectoryTest : public testing::Test {
 protected:
  StreamDirectoryTest() { EXPECT_TRUE(files_.CreateDirectories("/d").ok()); }

  StreamDirectory Make(const std::string& more) {
    v1::DataConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "data_dir: '/d' stream { end_file: '_END' } " + more, &config));
    return StreamDirectory(config, {{{"x", Shape()}}, {{"y", 0}}}, &files_);
  }
  static std::optional<std::string> Behind(const StreamDirectory& directory,
                                           const std::string& newest) {
    const absl::StatusOr<std::optional<std::string>> name = directory.FileBehind(newest);
    EXPECT_TRUE(name.ok()) << name.status();
    return name.ok() ? *name : std::nullopt;
  }

  MemoryFileSystem files_;
};

TEST_F(StreamDirectoryTest, FilesBehindOthersByTheirNames) {
  const StreamDirectory directory = Make("csv {} train_files: '*' eval_files: 'm.csv'");
  EXPECT_EQ(Behind(directory, ""), std::nullopt);
  for (const char* name : {"b.csv", "a.csv", "m.csv", "_END", ".hidden", "z.csv"}) {
    files_.SetContent(std::string("/d/") + name, "x,y\n1,2\n");
  }
  EXPECT_EQ(Behind(directory, ""), "a.csv");
  EXPECT_EQ(Behind(directory, "a.csv"), "b.csv");
  EXPECT_EQ(Behind(directory, "b.csv"), "z.csv");
  EXPECT_EQ(Behind(directory, "z.csv"), std::nullopt);
}

TEST_F(StreamDirectoryTest, TheEnd) {
  const StreamDirectory directory = Make("csv {} train_files: '*.csv'");
  EXPECT_EQ(directory.HasEnded().value(), false);
  files_.SetContent("/d/_END", "");
  EXPECT_EQ(directory.HasEnded().value(), true);
}

TEST_F(StreamDirectoryTest, EachFileIsASetOfItsOwn) {
  const StreamDirectory directory = Make("csv {} train_files: '*.csv' max_bad_records: 1");
  files_.SetContent("/d/a.csv", "x,y\n1,2\nbad,2\n");
  files_.SetContent("/d/b.csv", "y,x\n1,2\n3,4\n5,bad\n");
  EXPECT_EQ(directory.Open("a.csv").value()->size(), 1);
  // Another order of the columns, and a bad record of its own.
  EXPECT_EQ(directory.Open("b.csv").value()->size(), 2);
  files_.SetContent("/d/c.csv", "x\n1\n");
  const auto without = directory.Open("c.csv");
  EXPECT_TRUE(absl::IsInvalidArgument(without.status()));
  EXPECT_THAT(std::string(without.status().message()), HasSubstr("/d/c.csv: expected a column"));
}

}  // namespace
}  // namespace keelson
