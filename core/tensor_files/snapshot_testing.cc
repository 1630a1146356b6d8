#include "core/tensor_files/snapshot_testing.h"

#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "gtest/gtest.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

void WriteTestSnapshot(const std::string& directory, int64_t step, float first) {
  CheckpointDirectory snapshots(FileSystem::Real(), directory, Clock::Real());
  const std::string prefix = snapshots.SnapshotPrefix(step);
  std::vector<BundleIndexEntry> entries;
  for (int shard = 0; shard < 2; ++shard) {
    const auto writer = NewWriter(prefix, shard, 3);
    for (const char* name : {"dense/kernel", "dense/kernel/Momentum"}) {
      ASSERT_TRUE(writer->BeginSlice(name, Shape({4, 3}), 2 * shard, 2 * shard + 2).ok());
      ASSERT_TRUE(writer->AppendValues(Iota(6, first + static_cast<float>(6 * shard))).ok());
      ASSERT_TRUE(writer->EndSlice().ok());
    }
    v1::ShardState state;
    state.set_shard_step(step);
    state.add_variables("dense/kernel");
    state.add_variables("dense/bias");
    state.add_blocks()->set_updates(step);
    ASSERT_TRUE(writer
                    ->AddString("_keelson/shard-" + std::to_string(shard) + "-of-2",
                                state.SerializeAsString())
                    .ok());
    if (shard == 0) {
      ASSERT_TRUE(writer->AddTensor("dense/bias", Shape({3}), Iota(3, first)).ok());
      ASSERT_TRUE(writer->AddTensor("dense/bias/Momentum", Shape({3}), Iota(3, first)).ok());
      ASSERT_TRUE(writer->AddFloatScalar("beta1_power", 0.5f).ok());
    }
    AppendEntries(writer.get(), &entries);
  }
  const auto chief = NewWriter(prefix, 2, 3);
  v1::JobState job;
  job.set_global_step(step);
  job.set_next_epoch(1);
  job.set_next_position(640);
  job.set_num_records(1000);
  job.set_batch_size(64);
  job.set_job_id(0xabc);
  job.set_config_hash(0xdef);
  v1::JobState::Range* range = job.add_unfinished();
  range->set_begin(64);
  range->set_end(128);
  ASSERT_TRUE(chief->AddInt64("global_step", step).ok());
  ASSERT_TRUE(chief->AddString("_keelson/job", job.SerializeAsString()).ok());
  AppendEntries(chief.get(), &entries);
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix, 3, std::move(entries)).ok());
  const absl::Status status = snapshots.Commit(step, RetentionPolicy());
  ASSERT_TRUE(status.ok()) << status;
}

void WriteJobStateBundle(const std::string& prefix, const std::string& bytes) {
  std::vector<BundleIndexEntry> entries;
  const auto writer = NewWriter(prefix, 0, 1);
  ASSERT_TRUE(writer->AddString("_keelson/job", bytes).ok());
  AppendEntries(writer.get(), &entries);
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries)).ok());
}

}  // namespace keelson
