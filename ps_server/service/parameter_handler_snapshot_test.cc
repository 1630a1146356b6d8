// Snapshots as the handlers of several servers write and restore them.
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/shard_state.h"
#include "gmock/gmock.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

std::vector<ParameterControl*> HandlersOf(const TestServers& servers) {
  std::vector<ParameterControl*> handlers;
  for (const auto& server : servers) handlers.push_back(&server->handler);
  return handlers;
}

class SnapshotTest : public testing::TestWithParam<const char*> {};

TEST_P(SnapshotTest, RestoredServersGoOnAsIfNothingHadHappened) {
  for (const int shards : {1, 2, 3}) {
    const Placement placement = TestPlacement(shards);
    const std::string directory = FreshDirectory();
    const auto servers = StartServers(placement, GetParam(), directory);
    for (uint64_t sequence = 1; sequence <= 3; ++sequence) PushAll(placement, servers, 1, sequence);
    WriteBundle(HandlersOf(servers), directory, 3);
    const Arrays at_snapshot = PullAll(placement, servers);
    PushAll(placement, servers, 1, 4);
    const Arrays one_step_on = PullAll(placement, servers);
    EXPECT_NE(at_snapshot, one_step_on);
    for (const int other : {1, 2, 3, 5}) {
      SCOPED_TRACE(absl::StrCat(shards, " shards restored on ", other));
      const Placement target = TestPlacement(other);
      const auto restored = StartServers(target, GetParam(), directory, 3);
      EXPECT_EQ(PullAll(target, restored), at_snapshot);
      PushAll(target, restored, 1, 4);
      EXPECT_EQ(PullAll(target, restored), one_step_on);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SnapshotTest,
                         testing::Values("sgd {}", "momentum { nesterov: true }", "adagrad {}",
                                         "rmsprop { momentum: 0.5 }", "adam {}",
                                         "adamw { weight_decay: 0.1 } l2: 0.01 clip_value: 0.3",
                                         "ftrl { l1: 0.05 l2: 0.1 beta: 1 }"));

class SnapshotStateTest : public testing::Test {
 protected:
  absl::Status Initialize(int64_t restore_step) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
    request.set_restore_step(restore_step);
    initialized_.Clear();
    return servers_[0]->handler.Initialize(request, &initialized_);
  }

  const Placement placement_ = TestPlacement(1);
  const std::string directory_ = FreshDirectory();
  // The writer of the snapshots; the server that restores them.
  const TestServers writers_ = StartServers(placement_, "sgd {}", directory_);
  const TestServers servers_ = NewServers(1, directory_);
  v1::InitializeShardResponse initialized_;
};

TEST_F(SnapshotStateTest, KeepsStepAndAppliedSequences) {
  PushAll(placement_, writers_, 1, 1);
  PushAll(placement_, writers_, 1, 2);
  WriteBundle(HandlersOf(writers_), directory_, 2);
  ASSERT_TRUE(Initialize(2).ok());
  EXPECT_EQ(initialized_.status().shard_step(), 2);
  const Arrays restored = PullAll(placement_, servers_);
  const auto pushed =
      CallBulk(&servers_[0]->handler, BulkMethod::kPush, PushOf(placement_, 0, 1, 2));
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_GT(pushed->header.duplicate_blocks, 0u);
  EXPECT_EQ(pushed->header.shard_step, 2);
  EXPECT_EQ(PullAll(placement_, servers_), restored);
}

// Whoever was a worker before everything was restarted is refused, and leaves nothing behind.
TEST_F(SnapshotStateTest, KeepsNoSequencesOfFormerWorkersHoweverOftenAllIsRestarted) {
  for (uint64_t life = 1; life <= 50; ++life) {
    const TestServers servers = NewServers(1, directory_);
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
    request.mutable_members()->clear_members();
    v1::MemberList::Member* const worker = request.mutable_members()->add_members();
    worker->mutable_task()->set_role(v1::ROLE_WORKER);
    worker->set_incarnation(life);
    worker->set_membership_secret(kTestSecret);
    const auto step = static_cast<int64_t>(life);
    if (life > 1) request.set_restore_step(step - 1);
    v1::InitializeShardResponse response;
    ASSERT_EQ(servers[0]->handler.Initialize(request, &response), absl::OkStatus());
    PushAll(placement_, servers, life, 1);
    EXPECT_EQ(CallBulk(&servers[0]->handler, BulkMethod::kPush, PushOf(placement_, 0, life - 1, 2))
                  .status()
                  .code(),
              absl::StatusCode::kAborted);
    const auto bundle = BundleReader::Open(WriteBundle(HandlersOf(servers), directory_, step));
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    v1::ShardState state;
    ASSERT_TRUE(state.ParseFromString(*(*bundle)->ReadString(ShardStateName(0, 1))));
    ASSERT_EQ(state.applied_size(), 1);
    EXPECT_EQ(state.applied(0).incarnation(), life);
  }
}

TEST_F(SnapshotStateTest, TheSameChiefMayTryAnotherSnapshot) {
  WriteBundle(HandlersOf(writers_), directory_, 0);
  const Arrays older = PullAll(placement_, writers_);
  PushAll(placement_, writers_, 1, 1);
  WriteBundle(HandlersOf(writers_), directory_, 1);
  ASSERT_TRUE(Initialize(1).ok());
  EXPECT_EQ(PullAll(placement_, servers_), PullAll(placement_, writers_));
  ASSERT_TRUE(Initialize(0).ok());
  EXPECT_EQ(PullAll(placement_, servers_), older);
  EXPECT_EQ(initialized_.status().shard_step(), 0);
}

TEST_F(SnapshotStateTest, OfAnEmptyShardIsUnavailable) {
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(servers_[0]->handler.WriteSnapshot(SnapshotRequest(0), &response).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(SnapshotStateTest, IntoAMissingDirectorySaysSo) {
  const auto servers = StartServers(placement_, "sgd {}", directory_ + "/missing");
  v1::WriteSnapshotResponse response;
  const absl::Status status = servers[0]->handler.WriteSnapshot(SnapshotRequest(0), &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing"));
}

// A server that has no directory serves a chief that reads and writes snapshots itself.
TEST_F(SnapshotStateTest, NeedsADirectory) {
  const TestServers servers = StartServers(placement_, "sgd {}", "");
  v1::InitializeShardRequest restore = InitializeRequest(placement_, 0);
  restore.set_restore_step(1);
  v1::WriteSnapshotResponse written;
  EXPECT_EQ(servers[0]->handler.WriteSnapshot(SnapshotRequest(0), &written),
            absl::FailedPreconditionError(
                "WriteSnapshot: expected a directory that all roles share (--model_dir), found "
                "none; without one: chief --checkpoint_writer=chief"));
  EXPECT_EQ(servers[0]->handler.Initialize(restore, &initialized_).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(servers[0]->handler.Initialize(InitializeRequest(placement_, 0), &initialized_),
            absl::OkStatus());
}

// An earlier version's chief, or somebody who tries what once worked.
TEST_F(SnapshotStateTest, PathsAreRefused) {
  const std::string outside = FreshDirectory();
  for (const std::string& path : {outside + "/file", "../" + BaseName(outside) + "/file"}) {
    v1::WriteSnapshotRequest write = SnapshotRequest(0);
    write.GetReflection()->MutableUnknownFields(&write)->AddLengthDelimited(2, path);
    v1::WriteSnapshotResponse written;
    EXPECT_EQ(writers_[0]->handler.WriteSnapshot(write, &written),
              absl::FailedPreconditionError("WriteSnapshot: expected the step of a snapshot, found "
                                            "a path: the chief is of another version"));
    v1::InitializeShardRequest restore = InitializeRequest(placement_, 0);
    restore.GetReflection()->MutableUnknownFields(&restore)->AddLengthDelimited(10, path);
    EXPECT_EQ(servers_[0]->handler.Initialize(restore, &initialized_).code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(StatusOf(&servers_[0]->handler).state(), v1::ShardStatus::EMPTY);
  }
  EXPECT_THAT(*ListDirectory(outside), testing::IsEmpty());
  EXPECT_THAT(*ListDirectory(directory_), testing::IsEmpty());
}

}  // namespace
}  // namespace keelson
