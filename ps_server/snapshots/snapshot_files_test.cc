#include "ps_server/snapshots/snapshot_files.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The file of SnapshotRequest(7) before the commit.
const std::string kPending = "model.ckpt-7.data-00000-of-00001.tempstate77-0";

class SnapshotFilesTest : public testing::Test {
 protected:
  // Values of a shard as the snapshot `step` has them.
  absl::Status Restore(int64_t step) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
    request.set_restore_step(step);
    v1::InitializeShardResponse response;
    return server_->handler.Initialize(request, &response);
  }
  absl::Status Write(int64_t step, size_t shard = 0, size_t num_shards = 1) {
    v1::WriteSnapshotResponse response;
    return servers_[0]->handler.WriteSnapshot(SnapshotRequest(step, shard, num_shards), &response);
  }
  std::string Path(const std::string& name) { return JoinPath(directory_, name); }

  const Placement placement_ = TestPlacement(1);
  const std::string directory_ = FreshDirectory();
  const std::string outside_ = FreshDirectory();
  const TestServers servers_ = StartServers(placement_, "sgd {}", directory_);
  // Another one that restores.
  const std::unique_ptr<TestServer> server_ = std::make_unique<TestServer>(directory_);
};

TEST_F(SnapshotFilesTest, NamesFollowFromStepTermAndCut) {
  v1::PrepareCutRequest cut;
  *cut.mutable_header() = HeaderOf(kTestChief);
  cut.set_cut_id(0xc0ffee);
  v1::PrepareCutResponse prepared;
  ASSERT_EQ(servers_[0]->handler.PrepareCut(cut, &prepared), absl::OkStatus());
  v1::WriteSnapshotRequest request = SnapshotRequest(7, 1, 3);
  request.set_cut_id(0xc0ffee);
  v1::WriteSnapshotResponse response;
  ASSERT_EQ(servers_[0]->handler.WriteSnapshot(request, &response), absl::OkStatus());
  EXPECT_THAT(*ListDirectory(directory_),
              ElementsAre("model.ckpt-7.data-00001-of-00003.tempstate77-c0ffee"));
}

TEST_F(SnapshotFilesTest, NumbersThatMakeNoSenseAreRefused) {
  EXPECT_EQ(Write(-1),
            absl::InvalidArgumentError("WriteSnapshot: step: expected at least 0, found -1"));
  EXPECT_EQ(Write(7, 3, 3),
            absl::InvalidArgumentError(
                "WriteSnapshot: data_shard: expected less than num_data_shards (3), found 3"));
  EXPECT_EQ(Write(7, 0, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Restore(-1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(*ListDirectory(directory_), IsEmpty());
}

TEST_F(SnapshotFilesTest, ADirectoryThatOnlyOthersHaveIsNamed) {
  std::filesystem::remove(directory_);
  EXPECT_EQ(Write(7),
            absl::NotFoundError(absl::StrCat(
                "WriteSnapshot: expected a directory that all roles share (--model_dir), "
                "found that ",
                directory_, " does not exist here; without one: chief --checkpoint_writer=chief")));
}

TEST_F(SnapshotFilesTest, ASnapshotMayBeWrittenAgain) {
  ASSERT_EQ(WriteFileAtomically(Path(kPending + ".tempstate1"), "an attempt"), absl::OkStatus());
  ASSERT_EQ(Write(7), absl::OkStatus());
  const std::string first = *ReadFile(Path(kPending));
  PushAll(placement_, servers_, 1, 1);
  ASSERT_EQ(Write(7), absl::OkStatus());
  EXPECT_NE(*ReadFile(Path(kPending)), first);
}

TEST_F(SnapshotFilesTest, LinksAreReplacedNotWrittenThrough) {
  const std::string target = outside_ + "/target";
  ASSERT_EQ(WriteFileAtomically(target, "untouched"), absl::OkStatus());
  ASSERT_EQ(symlink(target.c_str(), Path(kPending).c_str()), 0);
  ASSERT_EQ(Write(7), absl::OkStatus());
  EXPECT_EQ(*ReadFile(target), "untouched");
  EXPECT_THAT(*ListDirectory(outside_), ElementsAre("target"));
}

TEST_F(SnapshotFilesTest, NothingIsReadThroughLinks) {
  const std::string prefix = WriteBundle({&servers_[0]->handler}, directory_, 7);
  ASSERT_EQ(Restore(7), absl::OkStatus());
  for (const std::string& path : {IndexPath(prefix), DataPath(prefix, 0, 1)}) {
    const std::string moved = JoinPath(outside_, BaseName(path));
    ASSERT_EQ(RenameFile(path, moved), absl::OkStatus());
    ASSERT_EQ(symlink(moved.c_str(), path.c_str()), 0);
    // The initial values: an answer for a snapshot that is there already would prove nothing.
    v1::InitializeShardResponse response;
    ASSERT_EQ(server_->handler.Initialize(InitializeRequest(placement_, 0), &response),
              absl::OkStatus());
    const absl::Status status = Restore(7);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    ASSERT_EQ(RenameFile(moved, path), absl::OkStatus());
  }
}

TEST_F(SnapshotFilesTest, TheStateFileMayNameASnapshotOtherwiseButNotElsewhere) {
  const std::string state = Path("checkpoint");
  WriteBundle({&servers_[0]->handler}, directory_, 7);
  for (const char* suffix : {".index", ".data-00000-of-00001"}) {
    ASSERT_EQ(RenameFile(Path(absl::StrCat("model.ckpt-7", suffix)),
                         Path(absl::StrCat("ckpt-7", suffix))),
              absl::OkStatus());
  }
  EXPECT_EQ(Restore(7).code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(WriteFileAtomically(state, "model_checkpoint_path: \"ckpt-7\"\n"), absl::OkStatus());
  EXPECT_EQ(Restore(7), absl::OkStatus());
  const TestServers others = StartServers(placement_, "sgd {}", outside_);
  const std::string elsewhere = WriteBundle({&others[0]->handler}, outside_, 8);
  ASSERT_EQ(
      WriteFileAtomically(state, absl::StrCat("model_checkpoint_path: \"", elsewhere, "\"\n")),
      absl::OkStatus());
  EXPECT_EQ(Restore(8).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace keelson
