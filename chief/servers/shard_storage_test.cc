#include "chief/servers/shard_storage.h"

#include <algorithm>

#include "chief/servers/fake_parameter_server.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/shard_state.h"
#include "core/cluster/placement.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ShardStorageTest : public testing::Test {
 protected:
  v1::WriteSnapshotRequest WriteRequest() const {
    v1::WriteSnapshotRequest request;
    request.set_step(40);
    request.set_data_shard(0);
    request.set_num_data_shards(1);
    request.set_cut_id(0xc0ffee);
    request.mutable_header()->set_chief_term(7);
    return request;
  }
  // A variable "w" of 5 x 3 with a momentum, as one server wrote it in blocks of 4 elements.
  void WriteBundle() {
    auto writer = BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix_, 0, 1), 0);
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::vector<float> values(15), momentum(15);
    for (size_t i = 0; i < 15; ++i) {
      values[i] = static_cast<float>(i);
      momentum[i] = 100.0f + static_cast<float>(i);
    }
    ASSERT_TRUE((*writer)->AddTensor("w", Shape({5, 3}), values).ok());
    ASSERT_TRUE((*writer)->AddTensor("w/Momentum", Shape({5, 3}), momentum).ok());
    v1::ShardState state;
    state.set_shard_step(40);
    state.add_variables("w");
    for (int64_t first = 0; first < 15; first += 4) {
      v1::ShardState::Block* block = state.add_blocks();
      block->set_first_element(first);
      block->set_num_elements(std::min<int64_t>(4, 15 - first));
      block->set_version(static_cast<uint64_t>(50 + first));
      block->set_updates(40);
      block->add_applied()->set_incarnation(9);
    }
    ASSERT_TRUE((*writer)->AddString(ShardStateName(0, 1), state.SerializeAsString()).ok());
    const auto entries = (*writer)->Finish();
    ASSERT_TRUE(entries.ok()) << entries.status();
    ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix_, 1, *entries).ok());
  }
  v1::InitializeShardRequest InitializeRequest(size_t shard, size_t num_shards) const {
    const Placement placement = Placement::Compute({{"w", Shape({5, 3}), {}}}, num_shards, 4);
    v1::InitializeShardRequest request;
    *request.mutable_placement() = placement.ToProto();
    request.set_placement_fingerprint(placement.Fingerprint());
    request.set_shard(static_cast<uint32_t>(shard));
    request.mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
    request.set_restore_step(40);
    return request;
  }

  const std::string directory_ = FreshDirectory();
  const std::string prefix_ = JoinPath(directory_, "model.ckpt-40");
  const CheckpointDirectory model_dir_{FileSystem::Real(), directory_, Clock::Real()};
  FakeParameterServer server_{FileSystem::Real(), directory_};
  ServerStorage by_server_;
  ChiefStorage by_chief_{&model_dir_};
};

TEST_F(ShardStorageTest, BothWritersMakeTheSameFile) {
  v1::WriteSnapshotResponse responses[2];
  ASSERT_EQ(by_server_.Write(&server_, WriteRequest(), &responses[0]), absl::OkStatus());
  const std::string pending = DataPath(prefix_, 0, 1) + ".tempstate7-c0ffee";
  const std::string expected = *ReadFile(pending);
  ASSERT_EQ(RemoveFile(pending), absl::OkStatus());
  ASSERT_EQ(by_chief_.Write(&server_, WriteRequest(), &responses[1]), absl::OkStatus());
  EXPECT_EQ(*ReadFile(pending), expected);
  EXPECT_EQ(responses[0].SerializeAsString(), responses[1].SerializeAsString());
  EXPECT_THAT(*ListDirectory(directory_), SizeIs(1)) << "no other file is left";
}

TEST_F(ShardStorageTest, AStreamThatFailsLeavesNothing) {
  server_.FailSnapshots(1);
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(by_chief_.Write(&server_, WriteRequest(), &response).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(*ListDirectory(directory_), IsEmpty());
}

TEST_F(ShardStorageTest, AStreamThatLacksBytesIsNoSnapshot) {
  server_.LoseBytes(4);
  v1::WriteSnapshotResponse response;
  const absl::Status status = by_chief_.Write(&server_, WriteRequest(), &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected 16 bytes, found 12"));
  EXPECT_THAT(*ListDirectory(directory_), IsEmpty());
}

TEST_F(ShardStorageTest, ADirectoryThatIsGoneIsAnError) {
  const CheckpointDirectory gone(FileSystem::Real(), "/nowhere/at/all", Clock::Real());
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(ChiefStorage(&gone).Write(&server_, WriteRequest(), &response).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ShardStorageTest, InitialValuesAreTheServersAffair) {
  v1::InitializeShardRequest request = InitializeRequest(0, 1);
  request.clear_restore_step();
  v1::InitializeShardResponse response;
  ASSERT_EQ(by_chief_.Initialize(&server_, request, &response), absl::OkStatus());
  EXPECT_THAT(server_.chunks(), IsEmpty());
  EXPECT_THAT(server_.initializations(), SizeIs(1));
}

TEST_F(ShardStorageTest, TheChiefSendsTheBlocksOfAShard) {
  WriteBundle();
  v1::InitializeShardResponse response;
  ASSERT_EQ(by_chief_.Initialize(&server_, InitializeRequest(0, 1), &response), absl::OkStatus());
  const std::vector<v1::InitializeChunk> chunks = server_.chunks();
  ASSERT_THAT(chunks, SizeIs(2));
  EXPECT_EQ(chunks[0].start().restore_step(), 40);
  EXPECT_EQ(chunks[0].shard_step(), 40);
  ASSERT_THAT(chunks[1].blocks(), SizeIs(4));
  EXPECT_THAT(FloatsOf(chunks[1].blocks(1)), ElementsAre(4, 5, 6, 7, 104, 105, 106, 107));
  EXPECT_THAT(FloatsOf(chunks[1].blocks(3)), ElementsAre(12, 13, 14, 112, 113, 114));
  EXPECT_EQ(chunks[1].blocks(1).version(), 54u);
  EXPECT_EQ(chunks[1].blocks(1).updates(), 40);
  ASSERT_THAT(chunks[1].blocks(1).applied(), SizeIs(1));
  EXPECT_EQ(chunks[1].blocks(1).applied(0).incarnation(), 9u);
}

TEST_F(ShardStorageTest, TheChiefSendsNoSlotsOfVariablesThatAreNotTrained) {
  WriteBundle();
  v1::InitializeShardRequest request = InitializeRequest(0, 1);
  request.mutable_placement()->mutable_variables(0)->set_average_decay(0.9f);
  v1::InitializeShardResponse response;
  ASSERT_EQ(by_chief_.Initialize(&server_, request, &response), absl::OkStatus());
  const std::vector<v1::InitializeChunk> chunks = server_.chunks();
  ASSERT_THAT(chunks, SizeIs(2));
  EXPECT_THAT(FloatsOf(chunks[1].blocks(1)), ElementsAre(4, 5, 6, 7));
}

TEST_F(ShardStorageTest, AnotherNumberOfServersIsServedToo) {
  WriteBundle();
  std::vector<float> values;
  for (size_t shard = 0; shard < 2; ++shard) {
    v1::InitializeShardResponse response;
    ASSERT_EQ(by_chief_.Initialize(&server_, InitializeRequest(shard, 2), &response),
              absl::OkStatus());
    for (const v1::InitializeChunk& chunk : server_.chunks()) {
      for (const v1::InitializeChunk::Block& block : chunk.blocks()) {
        const std::vector<float> floats = FloatsOf(block);
        values.insert(values.end(), floats.begin(), floats.begin() + floats.size() / 2);
      }
    }
  }
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
}

TEST_F(ShardStorageTest, AMissingSnapshotIsAnError) {
  v1::InitializeShardResponse response;
  EXPECT_EQ(by_chief_.Initialize(&server_, InitializeRequest(0, 1), &response).code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(server_.initializations(), IsEmpty());
}

}  // namespace
}  // namespace keelson
