#include "chief/servers/warm_start_storage.h"

#include <algorithm>
#include <string>

#include "chief/servers/fake_parameter_server.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/cluster/placement.h"
#include "core/tensor_files/snapshot_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class WarmStartStorageTest : public testing::Test {
 protected:
  WarmStartStorageTest() { WriteTestSnapshot(source_, 40, 100); }

  v1::TrainConfig Config() const {
    v1::TrainConfig config;
    auto* const group = config.mutable_initial_values()->add_groups();
    group->set_variables("dense/*");
    group->mutable_from()->set_path(source_);
    return config;
  }
  v1::InitializeShardRequest Request(size_t shard) const {
    const Placement placement = Placement::Compute(variables_, 2, /*block_elements=*/4);
    v1::InitializeShardRequest request;
    *request.mutable_placement() = placement.ToProto();
    request.set_shard(static_cast<uint32_t>(shard));
    request.mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
    return request;
  }
  // The blocks that a server is sent.
  std::vector<v1::InitializeChunk::Block> Blocks(size_t shard) {
    FakeParameterServer server;
    v1::InitializeShardResponse response;
    EXPECT_EQ(storage_.Initialize(&server, Request(shard), &response), absl::OkStatus());
    std::vector<v1::InitializeChunk::Block> blocks;
    for (const v1::InitializeChunk& chunk : server.chunks()) {
      EXPECT_FALSE(chunk.start().has_restore_step());
      for (const auto& block : chunk.blocks()) blocks.push_back(block);
    }
    return blocks;
  }

  const std::string source_ = FreshDirectory();
  const std::vector<VariableSpec> variables_ = {{"dense/kernel", Shape({4, 3}), {}},
                                                {"dense/bias", Shape({3}), {}},
                                                {"head", Shape({5}), {}}};
  WarmStartStorage storage_{Config(), variables_, std::make_unique<ServerStorage>()};
};

TEST_F(WarmStartStorageTest, EachServerGetsItsValuesAndMakesTheRest) {
  ASSERT_EQ(storage_.PrepareInitialValues(StopSignal()), absl::OkStatus());
  std::vector<float> sent;
  int left_to_server = 0;
  for (const size_t shard : {0, 1}) {
    const auto blocks = Blocks(shard);
    EXPECT_THAT(blocks, Not(IsEmpty()));
    for (const auto& block : blocks) {
      EXPECT_EQ(block.version(), 1u);
      EXPECT_EQ(block.updates(), 0);
      const std::vector<float> floats = FloatsOf(block);
      EXPECT_LE(floats.size(), 4u) << "no slots";
      if (floats.empty()) ++left_to_server;
      sent.insert(sent.end(), floats.begin(), floats.end());
    }
  }
  std::sort(sent.begin(), sent.end());
  EXPECT_THAT(
      sent, ElementsAre(100, 100, 101, 101, 102, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111));
  EXPECT_GT(left_to_server, 0);
}

TEST_F(WarmStartStorageTest, AllServersGetTheValuesOfOneFile) {
  const auto before = Blocks(0);
  const std::vector<std::string> names = *ListDirectory(source_);
  for (const std::string& name : names) {
    ASSERT_EQ(RemoveFile(JoinPath(source_, name)), absl::OkStatus());
  }
  const auto after = Blocks(0);
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(FloatsOf(after[i]), FloatsOf(before[i]));
}

TEST_F(WarmStartStorageTest, AFileThatIsAbsentIsFoundBeforeAServerIsCalled) {
  v1::TrainConfig config = Config();
  config.mutable_initial_values()->mutable_groups(0)->mutable_from()->set_path("/absent");
  WarmStartStorage storage(config, variables_, std::make_unique<ServerStorage>());
  const absl::Status status = storage.PrepareInitialValues(StopSignal());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("initial_values.groups[0].from: expected"));
}

TEST_F(WarmStartStorageTest, ARestoredShardLooksAtNoFile) {
  v1::TrainConfig config = Config();
  config.mutable_initial_values()->mutable_groups(0)->mutable_from()->set_path("/absent");
  WarmStartStorage storage(config, variables_, std::make_unique<ServerStorage>());
  v1::InitializeShardRequest request = Request(0);
  request.set_restore_step(40);
  FakeParameterServer server;
  v1::InitializeShardResponse response;
  EXPECT_EQ(storage.Initialize(&server, request, &response), absl::OkStatus());
  EXPECT_THAT(server.chunks(), IsEmpty());
  EXPECT_THAT(server.initializations(), SizeIs(1));
  EXPECT_EQ(server.last_restore(), 40);
}

}  // namespace
}  // namespace keelson
