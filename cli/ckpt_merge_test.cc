#include "cli/ckpt_merge.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/ckpt_export.h"
#include "cli/ckpt_inspect.h"
#include "cli/ckpt_tables.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/table_testing.h"
#include "core/tensor_files/tensor_source.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A job's directory with a whole snapshot and two deltas.
class CkptMergeTest : public testing::Test {
 protected:
  CkptMergeTest() : table_(WriteUsersChain(FileSystem::Real(), directory_)) {
    CheckpointDirectory directory(FileSystem::Real(), directory_, Clock::Real());
    for (const int64_t step : {1, 2, 3}) EXPECT_TRUE(directory.Commit(step, {}).ok());
  }
  std::string PrefixOf(int64_t step) {
    return JoinPath(directory_, absl::StrCat("model.ckpt-", step));
  }
  std::string Row(const std::string& prefix, uint64_t id) {
    std::ostringstream out;
    EXPECT_EQ(ShowRow(prefix, "users", id, &out), absl::OkStatus());
    return out.str();
  }

  const std::string directory_ = FreshDirectory();
  const TestTable table_;
  std::ostringstream out_;
};

TEST_F(CkptMergeTest, ListAndShowSayWhatADeltaBuildsOn) {
  ASSERT_EQ(ListSnapshots(directory_, &out_), absl::OkStatus());
  EXPECT_THAT(out_.str(), HasSubstr("whole"));
  EXPECT_THAT(out_.str(), HasSubstr("delta on 1"));
  EXPECT_THAT(out_.str(), HasSubstr("delta on 2"));
  std::ostringstream shown;
  ASSERT_EQ(ShowSnapshot(PrefixOf(3), &shown), absl::OkStatus());
  EXPECT_THAT(shown.str(), HasSubstr("the snapshot 0000000000000066 of step 2"));
  EXPECT_THAT(shown.str(), HasSubstr(absl::StrCat("rows: ", table_.rows.size(), ", dim 3")));
  EXPECT_THAT(shown.str(), HasSubstr("changed: 4, erased: 5"));
}

TEST_F(CkptMergeTest, RowsAreShownThroughTheChain) {
  EXPECT_THAT(Row(PrefixOf(3), 1), HasSubstr("1001 1001 1001"));  // of the second
  EXPECT_THAT(Row(PrefixOf(3), 5), HasSubstr("2005 2005 2005"));  // of the third
  EXPECT_THAT(Row(PrefixOf(3), 400), HasSubstr("initial values"));
  EXPECT_THAT(Row(PrefixOf(1), 400), Not(HasSubstr("initial values")));
}

TEST_F(CkptMergeTest, VerifyReadsTheChain) {
  EXPECT_TRUE(*VerifySnapshots(directory_, &out_)) << out_.str();
  ASSERT_TRUE(RemoveFile(IndexPath(PrefixOf(1))).ok());
  std::ostringstream damaged;
  EXPECT_FALSE(*VerifySnapshots(PrefixOf(3), &damaged));
  EXPECT_THAT(damaged.str(), HasSubstr("model.ckpt-2: is a delta on the snapshot 0000000000000065 "
                                       "of step 1"));
}

TEST_F(CkptMergeTest, ADeltaIsExportedWithWhatItBuildsOn) {
  ExportOptions options;
  options.source = PrefixOf(3);
  options.out = JoinPath(directory_, "model.npz");
  options.format = "npz";
  options.slots = true;
  ASSERT_EQ(ExportTensors(options, &out_), absl::OkStatus());
  const auto exported = OpenTensorSource(options.out);
  ASSERT_TRUE(exported.ok()) << exported.status();
  bool any = false;
  for (const TensorInfo& tensor : (*exported)->List()) {
    EXPECT_THAT(tensor.name, Not(HasSubstr("erased")));
    if (tensor.name != "users/keys") continue;
    any = true;
    EXPECT_EQ(tensor.shape, Shape({static_cast<int64_t>(table_.rows.size())}));
  }
  EXPECT_TRUE(any);
}

TEST_F(CkptMergeTest, MakesAWholeSnapshotInAnotherDirectory) {
  const std::string other = JoinPath(FreshDirectory(), "whole");
  ASSERT_EQ(MergeSnapshot(directory_, other, &out_), absl::OkStatus());
  EXPECT_THAT(out_.str(), HasSubstr("merged from"));
  std::ostringstream listed;
  ASSERT_EQ(ListSnapshots(other, &listed), absl::OkStatus());
  EXPECT_THAT(listed.str(), HasSubstr("whole"));
  EXPECT_TRUE(*VerifySnapshots(other, &listed)) << listed.str();
  for (const uint64_t id : {0, 1, 2, 5, 39, 400, 401, 402}) {
    EXPECT_EQ(Row(other, id), Row(PrefixOf(3), id)) << id;
  }
}

TEST_F(CkptMergeTest, ASnapshotOfTheStepIsNotReplaced) {
  EXPECT_EQ(MergeSnapshot(PrefixOf(3), directory_, &out_),
            absl::AlreadyExistsError(PrefixOf(3) + ": exists already"));
}

}  // namespace
}  // namespace keelson
