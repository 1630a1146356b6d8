#include "core/data/data_files.h"

#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

class DataFilesTest : public testing::Test {
 protected:
  DataFilesTest() { EXPECT_TRUE(files_.CreateDirectories("/d").ok()); }

  void Add(const std::vector<std::string>& names) {
    for (const std::string& name : names) files_.SetContent("/d/" + name, "x");
  }
  std::vector<std::string> Find(const std::vector<std::string>& patterns) {
    const auto paths = FindDataFiles("/d", patterns, "data.train_files", &files_);
    EXPECT_TRUE(paths.ok()) << paths.status();
    return paths.ok() ? *paths : std::vector<std::string>();
  }
  absl::Status Error(const std::vector<std::string>& patterns) {
    return FindDataFiles("/d", patterns, "data.train_files", &files_).status();
  }

  MemoryFileSystem files_;
};

TEST_F(DataFilesTest, NamesAndPatternsInTheirOrder) {
  Add({"day_0", "day_1", "day_10", "other"});
  EXPECT_THAT(Find({"other", "day_*"}),
              ElementsAre("/d/other", "/d/day_0", "/d/day_1", "/d/day_10"));
  EXPECT_THAT(Find({"day_1", "day_*"}), ElementsAre("/d/day_1", "/d/day_0", "/d/day_10"));
}

TEST_F(DataFilesTest, GzipEndsMayBeLeftOut) {
  Add({"a9a.t.gz", "both", "both.gz"});
  EXPECT_THAT(Find({"a9a.t"}), ElementsAre("/d/a9a.t.gz"));
  EXPECT_THAT(Find({"both*"}), ElementsAre("/d/both"));
}

TEST_F(DataFilesTest, ZstdEndsLikewiseAndPlainWinsOverGzipOverZstd) {
  Add({"a9a.t.zst", "both", "both.zst", "packed.gz", "packed.zst", "gz.gz", "gz.gz.zst"});
  EXPECT_THAT(Find({"a9a.t"}), ElementsAre("/d/a9a.t.zst"));
  EXPECT_THAT(Find({"both*"}), ElementsAre("/d/both"));
  EXPECT_THAT(Find({"packed"}), ElementsAre("/d/packed.gz"));
  EXPECT_THAT(Find({"gz*"}), ElementsAre("/d/gz.gz"));
}

TEST_F(DataFilesTest, IndexesAndHiddenFilesAreNoData) {
  Add({"day_0", "day_0.keelson_lines", "day_0.keelson_lines.tempstate123", ".day_1"});
  EXPECT_THAT(Find({"*"}), ElementsAre("/d/day_0"));
  EXPECT_THAT(Find({}), ElementsAre("/d/day_0"));
}

TEST_F(DataFilesTest, WithoutAPatternThereIsOneFile) {
  Add({"b", "a"});
  EXPECT_EQ(Error({}), absl::InvalidArgumentError("data directory /d: expected a single file, as "
                                                  "data.train_files names none, found a, b"));
}

TEST_F(DataFilesTest, AFileThatIsNotThere) {
  Add({"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(Error({"a", "x*"}),
            absl::NotFoundError("data.train_files[1]: expected a file \"x*\" in /d, found a, b, "
                                "c, d, e, ..."));
}

TEST_F(DataFilesTest, ADirectoryThatIsNotThere) {
  EXPECT_EQ(FindDataFiles("/none", {}, "data.train_files", &files_).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace keelson
