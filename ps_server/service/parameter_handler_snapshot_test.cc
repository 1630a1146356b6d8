// Snapshots as the handlers of several servers write and restore them.
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_index.h"
#include "gmock/gmock.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// Shard i of the servers writes data file i; then the index.
void WriteBundle(const TestServers& servers, const std::string& prefix) {
  const size_t files = servers.size();
  std::vector<BundleIndexEntry> entries;
  for (size_t s = 0; s < files; ++s) {
    v1::WriteSnapshotRequest request;
    request.set_data_path(DataPath(prefix, s, files));
    request.set_data_shard(static_cast<uint32_t>(s));
    v1::WriteSnapshotResponse response;
    absl::Status status = servers[s]->handler.WriteSnapshot(request, &response);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_GT(response.bytes_written(), 0);
    for (const auto& entry : response.entries()) entries.push_back({entry.key(), entry.entry()});
  }
  const absl::Status status =
      WriteBundleIndex(FileSystem::Real(), prefix, files, std::move(entries));
  ASSERT_TRUE(status.ok()) << status;
}

class SnapshotTest : public testing::TestWithParam<const char*> {};

TEST_P(SnapshotTest, RestoredServersGoOnAsIfNothingHadHappened) {
  for (const int shards : {1, 2, 3}) {
    const Placement placement = TestPlacement(shards);
    const auto servers = StartServers(placement, GetParam(), "");
    for (uint64_t sequence = 1; sequence <= 3; ++sequence) PushAll(placement, servers, 1, sequence);
    const std::string prefix = FreshDirectory() + "/model.ckpt-3";
    WriteBundle(servers, prefix);
    const Arrays at_snapshot = PullAll(placement, servers);
    PushAll(placement, servers, 1, 4);
    const Arrays one_step_on = PullAll(placement, servers);
    EXPECT_NE(at_snapshot, one_step_on);
    for (const int other : {1, 2, 3, 5}) {
      SCOPED_TRACE(absl::StrCat(shards, " shards restored on ", other));
      const Placement target = TestPlacement(other);
      const auto restored = StartServers(target, GetParam(), prefix);
      EXPECT_EQ(PullAll(target, restored), at_snapshot);
      PushAll(target, restored, 1, 4);
      EXPECT_EQ(PullAll(target, restored), one_step_on);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SnapshotTest,
                         testing::Values("sgd {}", "momentum { nesterov: true }", "adagrad {}",
                                         "rmsprop { momentum: 0.5 }", "adam {}",
                                         "adamw { weight_decay: 0.1 } l2: 0.01 clip_value: 0.3"));

class SnapshotStateTest : public testing::Test {
 protected:
  absl::Status Initialize(const std::string& restore_prefix) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
    request.set_restore_prefix(restore_prefix);
    initialized_.Clear();
    return servers_[0]->handler.Initialize(request, &initialized_);
  }

  const Placement placement_ = TestPlacement(1);
  // The writer of the snapshots; the server that restores them.
  const TestServers writers_ = StartServers(placement_, "sgd {}", "");
  const TestServers servers_ = NewServers(1);
  v1::InitializeShardResponse initialized_;
};

TEST_F(SnapshotStateTest, KeepsStepAndAppliedSequences) {
  PushAll(placement_, writers_, 1, 1);
  PushAll(placement_, writers_, 1, 2);
  const std::string prefix = FreshDirectory() + "/model.ckpt-2";
  WriteBundle(writers_, prefix);
  ASSERT_TRUE(Initialize(prefix).ok());
  EXPECT_EQ(initialized_.status().shard_step(), 2);
  const Arrays restored = PullAll(placement_, servers_);
  const auto pushed =
      CallBulk(&servers_[0]->handler, BulkMethod::kPush, PushOf(placement_, 0, 1, 2));
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_GT(pushed->header.duplicate_blocks, 0u);
  EXPECT_EQ(pushed->header.shard_step, 2);
  EXPECT_EQ(PullAll(placement_, servers_), restored);
}

TEST_F(SnapshotStateTest, TheSameChiefMayTryAnotherSnapshot) {
  const std::string directory = FreshDirectory();
  WriteBundle(writers_, directory + "/model.ckpt-0");
  const Arrays older = PullAll(placement_, writers_);
  PushAll(placement_, writers_, 1, 1);
  WriteBundle(writers_, directory + "/model.ckpt-1");
  ASSERT_TRUE(Initialize(directory + "/model.ckpt-1").ok());
  EXPECT_EQ(PullAll(placement_, servers_), PullAll(placement_, writers_));
  ASSERT_TRUE(Initialize(directory + "/model.ckpt-0").ok());
  EXPECT_EQ(PullAll(placement_, servers_), older);
  EXPECT_EQ(initialized_.status().shard_step(), 0);
}

TEST_F(SnapshotStateTest, OfAnEmptyShardIsUnavailable) {
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(servers_[0]->handler.WriteSnapshot({}, &response).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(SnapshotStateTest, IntoAMissingDirectorySaysSo) {
  v1::WriteSnapshotRequest request;
  request.set_data_path(FreshDirectory() + "/missing/model.ckpt-0.data-00000-of-00001");
  v1::WriteSnapshotResponse response;
  const absl::Status status = writers_[0]->handler.WriteSnapshot(request, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing"));
}

}  // namespace
}  // namespace keelson
