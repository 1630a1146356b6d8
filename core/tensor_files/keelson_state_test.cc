#include "core/tensor_files/keelson_state.h"

#include <memory>

#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/snapshot_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::Key;
using testing::UnorderedElementsAre;

absl::StatusOr<KeelsonState> StateAt(const std::string& prefix) {
  const absl::StatusOr<std::unique_ptr<BundleReader>> bundle = BundleReader::Open(prefix);
  return bundle.ok() ? ReadKeelsonState(**bundle) : bundle.status();
}

TEST(KeelsonStateTest, IsThatOfTheJobAndOfEachShard) {
  const std::string directory = FreshDirectory();
  WriteTestSnapshot(directory, 7);
  const absl::StatusOr<KeelsonState> state = StateAt(directory + "/model.ckpt-7");
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(state->job.has_value());
  EXPECT_EQ(state->job->global_step(), 7);
  EXPECT_THAT(state->shards,
              UnorderedElementsAre(Key("_keelson/shard-0-of-2"), Key("_keelson/shard-1-of-2")));
  EXPECT_EQ(state->shards.at("_keelson/shard-1-of-2").shard_step(), 7);
}

TEST(KeelsonStateTest, OtherWritersHaveNone) {
  const std::string prefix = FreshDirectory() + "/tf";
  WriteSmallBundle(prefix);
  const absl::StatusOr<KeelsonState> state = StateAt(prefix);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_FALSE(state->job.has_value());
  EXPECT_TRUE(state->shards.empty());
}

TEST(KeelsonStateTest, WhatIsNoStateIsNamed) {
  const std::string prefix = FreshDirectory() + "/model.ckpt-1";
  WriteJobStateBundle(prefix, "no JobState\xff");
  EXPECT_EQ(StateAt(prefix).status(),
            absl::DataLossError(prefix + ": _keelson/job: not a JobState"));
}

}  // namespace
}  // namespace keelson
