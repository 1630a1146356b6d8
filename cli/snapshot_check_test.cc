#include "cli/snapshot_check.h"

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/snapshot_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class SnapshotCheckTest : public testing::Test {
 protected:
  void SetUp() override { WriteTestSnapshot(directory_, 100); }

  const std::string directory_ = FreshDirectory();
  const std::string prefix_ = directory_ + "/model.ckpt-100";
};

TEST_F(SnapshotCheckTest, CountsWhatIsSound) {
  const SnapshotCheck check = CheckSnapshot(prefix_);
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(check.tensors, 9);
  int64_t bytes = 0;
  for (int file = 0; file < 3; ++file) {
    bytes += static_cast<int64_t>(ReadRawFile(DataPath(prefix_, file, 3)).size());
  }
  EXPECT_EQ(check.bytes, bytes);
}

TEST_F(SnapshotCheckTest, ATypeNeedNotBeKnownForItsChecksum) {
  const std::string prefix = FreshDirectory() + "/tf";
  WriteRawBundle(prefix, {{"f", BundleDtype::kFloat8E4m3b11fnuz, Shape({2}), "ab"},
                          {"q", BundleDtype::kQint32, Shape({1}), "abcd"},
                          {"s", BundleDtype::kString, Shape(), "text"},
                          {"u", static_cast<BundleDtype>(99), Shape({2}), "abcdefg"},
                          {"v", BundleDtype::kVariant, Shape(), "?"}});
  SnapshotCheck check = CheckSnapshot(prefix);
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_THAT(check.not_checked, ElementsAre("'v' of type variant"));
  const std::string data = DataPath(prefix, 0, 1);
  WriteRawFile(data, Flipped(ReadRawFile(data), 0));
  check = CheckSnapshot(prefix);
  EXPECT_EQ(check.problems.size(), 1u);
}

TEST_F(SnapshotCheckTest, ADataFileThatIsNotThereOrTooLongIsNamed) {
  const std::string first = DataPath(prefix_, 0, 3);
  const std::string last = DataPath(prefix_, 2, 3);
  ASSERT_TRUE(RemoveFile(first).ok());
  const std::string content = ReadRawFile(last);
  WriteRawFile(last, content + "x");
  const SnapshotCheck check = CheckSnapshot(prefix_);
  EXPECT_THAT(check.problems, ElementsAre(StartsWith("cannot open " + first),
                                          absl::StrCat(last, ": has ", content.size() + 1,
                                                       " bytes, expected ", content.size())));
  EXPECT_EQ(check.bytes, static_cast<int64_t>(ReadRawFile(DataPath(prefix_, 1, 3)).size()));
}

// Every byte of every file counts.
TEST_F(SnapshotCheckTest, SeesEveryFlippedBit) {
  const std::string files[] = {prefix_ + ".index", DataPath(prefix_, 0, 3), DataPath(prefix_, 1, 3),
                               DataPath(prefix_, 2, 3)};
  for (const std::string& path : files) {
    const std::string content = ReadRawFile(path);
    for (size_t i = 0; i < content.size(); ++i) {
      ReplaceRawFile(path, Flipped(content, i, static_cast<int>(i % 8)));
      EXPECT_THAT(CheckSnapshot(prefix_).problems, Not(IsEmpty())) << path << " byte " << i;
    }
    WriteRawFile(path, content);
  }
}

TEST_F(SnapshotCheckTest, ReadsKeelsonsState) {
  const std::string prefix = directory_ + "/model.ckpt-300";
  WriteJobStateBundle(prefix, "no JobState\xff");
  EXPECT_THAT(CheckSnapshot(prefix).problems,
              ElementsAre(prefix + ": _keelson/job: not a JobState"));
}

}  // namespace
}  // namespace keelson
