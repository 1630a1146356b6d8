// Restores a snapshot that an earlier version wrote: two servers with Adam, after three steps with
// gradients of 0.5. Its files stay as they are; a reader that cannot read them has broken its
// promise to users' models.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/row_messages_testing.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::FloatNear;

constexpr char kGoldenOptimizer[] = "adam {}";
constexpr uint64_t kGoldenWorker = 1;

Placement GoldenPlacement(size_t num_shards, std::vector<TableSpec> tables = {}) {
  const Initializer quarter = {Initializer::Kind::kConstant, 0.25f, 0};
  return Placement::Compute(
      {{"dense/kernel", Shape({6, 3}), quarter}, {"dense/bias", Shape({3}), quarter}}, num_shards,
      /*block_elements=*/4, std::move(tables));
}

class GoldenSnapshotTest : public testing::Test {
 protected:
  GoldenSnapshotTest() {
    const char* const source = std::getenv("KEELSON_SOURCE_DIR");
    if (source == nullptr) return;
    directory_ = JoinPath(source, "ps_server/snapshots/golden/dense_adam_2_servers");
  }
  void SetUp() override { ASSERT_FALSE(directory_.empty()) << "KEELSON_SOURCE_DIR is not set"; }

  std::string directory_;
};

TEST_F(GoldenSnapshotTest, IsListedAndWhole) {
  const CheckpointDirectory directory(FileSystem::Real(), directory_, Clock::Real());
  const auto snapshots = directory.List();
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  ASSERT_EQ(snapshots->size(), 1u);
  EXPECT_EQ(snapshots->at(0).step, 3);
  const auto bundle = BundleReader::Open(snapshots->at(0).prefix);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->VerifyAll(), absl::OkStatus());
  const auto mean = (*bundle)->ReadTensor("dense/kernel/Adam");
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_THAT(mean->span(), Each(FloatNear(0.5f * (1 - 0.9f * 0.9f * 0.9f), 1e-6f)));
  v1::JobState job;
  ASSERT_TRUE(job.ParseFromString(*(*bundle)->ReadString("_keelson/job")));
  EXPECT_EQ(job.global_step(), 3);
  EXPECT_EQ(job.num_records(), 1000);
}

TEST_F(GoldenSnapshotTest, RestoresOnAnyNumberOfServers) {
  for (const size_t shards : {1, 2, 3}) {
    const Placement placement = GoldenPlacement(shards);
    const TestServers servers = StartServers(placement, kGoldenOptimizer, directory_, 3);
    EXPECT_EQ(StatusOf(&servers[0]->handler).shard_step(), 3);
    for (const auto& [name, values] : PullAll(placement, servers)) {
      // Adam's steps with a constant gradient are as long as the learning rate.
      EXPECT_THAT(values, Each(FloatNear(0.25f - 3 * kTestLearningRate, 1e-4f))) << name;
    }
  }
}

// The version that wrote it knew no tables.
TEST_F(GoldenSnapshotTest, RestoresAModelThatHasTablesNow) {
  RowsById gradients;
  for (uint64_t id = 0; id < 300; ++id) gradients[id << 56 | id] = {1, 1, 1};
  const MessageRows pushed = {.table = 0, .rows = gradients};
  for (const size_t shards : {1, 2, 3}) {
    const Placement placement = GoldenPlacement(shards, TestTables());
    const TestServers servers = StartServers(placement, kGoldenOptimizer, directory_, 3);
    for (const auto& [name, values] : PullAll(placement, servers)) {
      EXPECT_THAT(values, Each(FloatNear(0.25f - 3 * kTestLearningRate, 1e-4f))) << name;
    }
    size_t rows = 0;
    for (size_t s = 0; s < shards; ++s) {
      const auto count = [&] {
        const auto answer =
            CallBulk(&servers[s]->handler, BulkMethod::kPull, RowPullOf(placement, s, {pushed}));
        EXPECT_TRUE(answer.ok()) << answer.status();
        return RowsOf(placement, s, {pushed}, *answer)[0].size();
      };
      EXPECT_EQ(count(), 0u);
      const auto push = CallBulk(&servers[s]->handler, BulkMethod::kPush,
                                 RowPushOf(placement, s, kGoldenWorker, 4, {pushed}));
      ASSERT_TRUE(push.ok()) << push.status();
      EXPECT_EQ(push->header.duplicate_blocks, 0u);
      rows += count();
    }
    EXPECT_EQ(rows, gradients.size());
  }
}

TEST_F(GoldenSnapshotTest, KnowsWhatWasApplied) {
  const Placement placement = GoldenPlacement(2);
  const TestServers servers = StartServers(placement, kGoldenOptimizer, directory_, 3);
  const Arrays restored = PullAll(placement, servers);
  const auto push = [&](uint64_t sequence) {
    return CallBulk(&servers[0]->handler, BulkMethod::kPush,
                    ConstantPushOf(placement, 0, kGoldenWorker, sequence, 0.5f));
  };
  const auto repeated = push(3);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_GT(repeated->header.duplicate_blocks, 0u);
  EXPECT_EQ(PullAll(placement, servers), restored);
  const auto next = push(4);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->header.duplicate_blocks, 0u);
  EXPECT_NE(PullAll(placement, servers), restored);
}

}  // namespace
}  // namespace keelson
