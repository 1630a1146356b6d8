// Jobs that are stopped and started again on the same model directory.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/index_table.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/shard_state.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

// Runs a job to somewhere in the middle and stops it as by SIGTERM. Returns the step of its last
// snapshot.
int64_t RunToTheMiddle(const std::string& model_dir, int servers, int workers) {
  LocalCluster cluster({servers, workers, false, LongerConfig(model_dir)});
  cluster.gate().CloseAt(60);
  cluster.Start();
  cluster.WaitForStep(60);
  const absl::Status status = cluster.StopChief();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(*DoneStep(model_dir), -1);
  return *VerifiedLatestStep(model_dir);
}

// Runs the rest, and expects that it begins at `step`.
void RunTheRest(const std::string& model_dir, int servers, int workers, int64_t step) {
  LocalCluster cluster({servers, workers, false, LongerConfig(model_dir)});
  cluster.Start();
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(model_dir), 200);
  EXPECT_EQ(*VerifiedLatestStep(model_dir), 200);
  const CoordinatorStatus status = cluster.chief().coordinator()->reports()->GetStatus();
  EXPECT_EQ(status.step, 200);
  EXPECT_EQ(status.totals.steps(), 200 - step);
}

// Writes the chief's part of a snapshot of two servers anew, with a state of shard 1 beside it that
// is one committed round behind, and has the index name that.
void SetShardBack(const std::string& prefix) {
  FileSystem* const files = FileSystem::Real();
  const auto bundle = BundleReader::Open(prefix);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const std::string name = ShardStateName(1, 2);
  auto state = ParseShardState((*bundle)->ReadString(name).value(), prefix, name);
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_GT(state->committed_round(), 0);
  state->set_committed_round(state->committed_round() - 1);
  auto writer = BundleDataWriter::Create(files, DataPath(prefix, 2, 3), 2);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->AddInt64("global_step", (*bundle)->ReadInt64("global_step").value()).ok());
  ASSERT_TRUE(
      (*writer)->AddString(kJobStateName, (*bundle)->ReadString(kJobStateName).value()).ok());
  ASSERT_TRUE((*writer)->AddString(name, state->SerializeAsString()).ok());
  const auto entries = (*writer)->Finish();
  ASSERT_TRUE(entries.ok()) << entries.status();
  auto table = ReadIndexTable(files, IndexPath(prefix));
  ASSERT_TRUE(table.ok()) << table.status();
  // The state was the last of its file, which has to be as long as the index says.
  decltype(BundleIndexEntry::entry) replaced;
  ASSERT_TRUE(replaced.ParseFromString((*table)[name]));
  std::filesystem::resize_file(DataPath(prefix, 1, 3), static_cast<size_t>(replaced.offset()));
  for (const BundleIndexEntry& entry : *entries) {
    ASSERT_TRUE(table->contains(entry.key)) << entry.key;
    (*table)[entry.key] = entry.entry.SerializeAsString();
  }
  ASSERT_EQ(WriteIndexTable(files, IndexPath(prefix), *table), absl::OkStatus());
}

TEST(ResumeTest, ASnapshotWhoseShardsHaveOtherRoundsIsNotRestored) {
  v1::TrainConfig config = LongerConfig(FreshDirectory());
  auto* sync = config.mutable_consistency()->mutable_mode()->mutable_synchronous();
  sync->set_replicas_to_aggregate(1);
  sync->set_total_replicas(1);
  ASSERT_TRUE(FinalizeTrainConfig(&config).ok());
  const std::string& model_dir = config.checkpoint().model_dir();
  {
    LocalCluster cluster({2, 1, false, config});
    cluster.gate().CloseAt(60);
    cluster.Start();
    cluster.WaitForStep(60);
    EXPECT_TRUE(absl::IsCancelled(cluster.StopChief()));
  }
  const auto snapshots =
      CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List().value();
  ASSERT_GE(snapshots.size(), 2u);
  SetShardBack(snapshots.back().prefix);
  testing::internal::CaptureStderr();
  {
    LocalCluster cluster({2, 1, false, config});
    cluster.Start();
    cluster.ExpectDone();
    const int64_t before = snapshots[snapshots.size() - 2].step;
    EXPECT_EQ(cluster.chief().coordinator()->reports()->GetStatus().totals.steps(), 200 - before);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("as in _keelson/job, found"));
}

TEST(ResumeTest, StoppedJobLosesNoStep) {
  const std::string model_dir = FreshDirectory();
  const int64_t step = RunToTheMiddle(model_dir, 2, 2);
  EXPECT_GE(step, 60);  // the snapshot of the stop
  RunTheRest(model_dir, 2, 2, step);
}

TEST(ResumeTest, WithMoreServers) {
  const std::string model_dir = FreshDirectory();
  RunTheRest(model_dir, 3, 2, RunToTheMiddle(model_dir, 1, 2));
}

TEST(ResumeTest, WithFewerServers) {
  const std::string model_dir = FreshDirectory();
  RunTheRest(model_dir, 1, 2, RunToTheMiddle(model_dir, 3, 2));
}

TEST(ResumeTest, WithOneWorkerItEndsWhereAnUninterruptedJobDoes) {
  const std::string interrupted = FreshDirectory();
  RunTheRest(interrupted, 3, 1, RunToTheMiddle(interrupted, 2, 1));
  const std::string whole = FreshDirectory();
  RunTheRest(whole, 1, 1, 0);
  EXPECT_TRUE(*ReadModelValues(interrupted + "/model.ckpt-200") ==
              *ReadModelValues(whole + "/model.ckpt-200"));
}

}  // namespace
}  // namespace keelson
