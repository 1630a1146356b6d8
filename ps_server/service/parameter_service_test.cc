// What every parameter server does, whether its caller is in the same process or behind gRPC.
#include "core/base/file.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/client/services/parameter_control.h"
#include "gmock/gmock.h"
#include "ps_server/service/loopback_testing.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

enum class Transport { kInProcess, kGrpc };

class ParameterServiceTest : public testing::TestWithParam<Transport> {
 protected:
  ParameterServiceTest() {
    if (GetParam() == Transport::kInProcess) return;
    loopback_ = std::make_unique<LoopbackServer>(&server_.handler);
    remote_ = loopback_->Connect();
    remote_bulk_ = loopback_->ConnectBulk();
  }

  ParameterControl* service() { return remote_ == nullptr ? &server_.handler : remote_.get(); }
  BulkHandler* bulk() { return remote_bulk_ == nullptr ? &server_.handler : remote_bulk_.get(); }
  void Initialize() {
    v1::InitializeShardResponse response;
    const absl::Status status =
        service()->Initialize(InitializeRequest(placement_, 0, "adam {}"), &response);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(response.status().state(), v1::ShardStatus::READY);
  }
  absl::Status Pull(const TestRequest& request) {
    const auto response = CallBulk(bulk(), BulkMethod::kPull, request);
    pulled_ = response.ok() ? *response : TestResponse();
    return response.status();
  }
  absl::Status Push(const TestRequest& request) {
    const auto response = CallBulk(bulk(), BulkMethod::kPush, request);
    pushed_ = response.ok() ? response->header : BulkResponse();
    return response.status();
  }
  Arrays Values() {
    EXPECT_TRUE(Pull(PullOf(placement_, 0)).ok());
    Arrays arrays;
    Receive(placement_, pulled_, &arrays);
    return arrays;
  }

  const Placement placement_ = TestPlacement(1);
  TestServer server_;
  std::unique_ptr<LoopbackServer> loopback_;
  std::unique_ptr<ParameterControl> remote_;
  std::unique_ptr<BulkHandler> remote_bulk_;
  TestResponse pulled_;
  BulkResponse pushed_;
};

INSTANTIATE_TEST_SUITE_P(Transports, ParameterServiceTest,
                         testing::Values(Transport::kInProcess, Transport::kGrpc),
                         [](const auto& info) {
                           return info.param == Transport::kGrpc ? "Grpc" : "InProcess";
                         });

TEST_P(ParameterServiceTest, NotInitialisedIsUnavailable) {
  EXPECT_EQ(Pull(PullOf(placement_, 0)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Push(PushOf(placement_, 0, 1, 1)).code(), absl::StatusCode::kUnavailable);
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(service()->WriteSnapshot(SnapshotRequest(0), &response).code(),
            absl::StatusCode::kUnavailable);
}

TEST_P(ParameterServiceTest, OtherPlacementIsAborted) {
  Initialize();
  const Placement other = TestPlacement(2);
  EXPECT_EQ(Pull(PullOf(other, 0)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Push(PushOf(other, 0, 1, 1)).code(), absl::StatusCode::kAborted);
}

TEST_P(ParameterServiceTest, UnknownBlocksAreInvalid) {
  Initialize();
  TestRequest pull = PullOf(placement_, 0);
  pull.header.ranges[0].partition = 99;
  absl::Status status = Pull(pull);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("partition 99"));
  pull = PullOf(placement_, 0);
  pull.header.ranges[0].first_block = 1000;
  status = Pull(pull);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("block 1000"));
}

TEST_P(ParameterServiceTest, PayloadOfAnotherSizeIsInvalid) {
  Initialize();
  const Arrays before = Values();
  TestRequest push = PushOf(placement_, 0, 1, 1);
  push.payload.pop_back();
  EXPECT_EQ(Push(push).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Values(), before);
}

TEST_P(ParameterServiceTest, OtherConfigurationIsRefused) {
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  request.set_config_hash(0x123);
  v1::InitializeShardResponse response;
  const absl::Status status = service()->Initialize(request, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000abc"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000123"));
}

TEST_P(ParameterServiceTest, PushesAreAppliedOnce) {
  Initialize();
  const Arrays initial = Values();
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  EXPECT_EQ(pushed_.shard_step, 1);
  const Arrays once = Values();
  EXPECT_NE(once, initial);
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  EXPECT_GT(pushed_.duplicate_blocks, 0u);
  EXPECT_EQ(Values(), once);
}

TEST_P(ParameterServiceTest, PullIsConditional) {
  Initialize();
  TestRequest pull = PullOf(placement_, 0);
  ASSERT_TRUE(Pull(pull).ok());
  for (const BlockHeader& block : pulled_.header.blocks) {
    pull.header.known_versions.push_back(block.version);
  }
  ASSERT_TRUE(Pull(pull).ok());
  EXPECT_TRUE(pulled_.header.blocks.empty());
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  ASSERT_TRUE(Pull(pull).ok());
  EXPECT_EQ(pulled_.header.blocks.size(), pull.header.known_versions.size());
}

TEST_P(ParameterServiceTest, PushPullBringsTheValuesAfterThePush) {
  Initialize();
  const auto response = CallBulk(bulk(), BulkMethod::kPushPull, PushOf(placement_, 0, 1, 1));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header.shard_step, 1);
  Arrays received;
  Receive(placement_, *response, &received);
  EXPECT_EQ(received, Values());
}

TEST_P(ParameterServiceTest, SnapshotBecomesABundle) {
  Initialize();
  const auto bundle = BundleReader::Open(WriteBundle({service()}, server_.model_dir, 0));
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto bias = (*bundle)->ReadTensor("dense/bias");
  ASSERT_TRUE(bias.ok()) << bias.status();
  EXPECT_EQ(std::vector<float>(bias->span().begin(), bias->span().end()),
            std::vector<float>(17, 0.25f));
}

TEST_P(ParameterServiceTest, SnapshotStreamsTheBytesOfTheFile) {
  Initialize();
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  v1::WriteSnapshotResponse written;
  ASSERT_TRUE(service()->WriteSnapshot(SnapshotRequest(1), &written).ok());
  std::string bytes;
  v1::WriteSnapshotResponse streamed;
  v1::StreamSnapshotRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  const absl::Status status = service()->StreamSnapshot(
      request,
      [&bytes](absl::string_view data) {
        EXPECT_LE(data.size(), 1u << 20);
        bytes.append(data.data(), data.size());
        return absl::OkStatus();
      },
      &streamed);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(bytes,
            *ReadFile(server_.model_dir + "/model.ckpt-1.data-00000-of-00001.tempstate77-0"));
  EXPECT_EQ(streamed.shard_step(), 1);
  EXPECT_EQ(streamed.bytes_written(), static_cast<int64_t>(bytes.size()));
  ASSERT_EQ(streamed.entries_size(), written.entries_size());
  for (int i = 0; i < written.entries_size(); ++i) {
    EXPECT_EQ(streamed.entries(i).SerializeAsString(), written.entries(i).SerializeAsString());
  }
}

TEST_P(ParameterServiceTest, SnapshotThatCannotBeTakenSaysSo) {
  const auto take = [](absl::string_view) { return absl::ResourceExhaustedError("disk full"); };
  v1::StreamSnapshotRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(service()->StreamSnapshot(request, take, &response).code(),
            absl::StatusCode::kUnavailable);
  Initialize();
  EXPECT_EQ(service()->StreamSnapshot(request, take, &response),
            absl::ResourceExhaustedError("disk full"));
}

// Blocks of ones, without slots.
TEST_P(ParameterServiceTest, ShardIsStreamedIn) {
  v1::InitializeChunk first;
  *first.mutable_start() = InitializeRequest(placement_, 0);
  first.set_shard_step(7);
  std::vector<v1::InitializeChunk> chunks;
  for (const size_t p : placement_.PartitionsOf(0)) {
    for (int64_t b = 0; b < placement_.NumBlocks(p); ++b) {
      v1::InitializeChunk::Block* block = chunks.emplace_back().add_blocks();
      block->set_version(3);
      block->set_elements(BytesOf(std::vector<float>(placement_.BlockElements(p, b), 1.0f)));
    }
  }
  size_t sent = 0;
  const auto next = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    if (sent == chunks.size()) return std::nullopt;
    return chunks[sent++];
  };
  v1::InitializeShardResponse response;
  const absl::Status status = service()->InitializeStreamed(first, next, &response);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(response.status().shard_step(), 7);
  EXPECT_EQ(response.status().state(), v1::ShardStatus::READY);
  for (const auto& [name, values] : Values()) EXPECT_THAT(values, testing::Each(1)) << name;
}

TEST_P(ParameterServiceTest, ShardThatIsNotWholeIsRefused) {
  v1::InitializeChunk first;
  *first.mutable_start() = InitializeRequest(placement_, 0);
  const auto nothing = []() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    return std::nullopt;
  };
  v1::InitializeShardResponse response;
  absl::Status status = service()->InitializeStreamed(first, nothing, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected the block"));
  const auto damaged = []() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    return absl::DataLossError("checksum");
  };
  EXPECT_EQ(service()->InitializeStreamed(first, damaged, &response),
            absl::DataLossError("checksum"));
  first.mutable_start()->set_config_hash(0x123);
  EXPECT_EQ(service()->InitializeStreamed(first, nothing, &response).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(ParameterServiceTest, RoundsAreStagedAndCommitted) {
  Initialize();
  const Arrays before = Values();
  ASSERT_TRUE(Push(StagedPushOf(placement_, 0, 1, 1, {0, 1}, 2.5f, 1)).ok());
  EXPECT_EQ(Values(), before);
  EXPECT_EQ(CommitRound(service(), {0, 1}, 2).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(CommitRound(service(), {0, 1}, 1).ok());
  EXPECT_NE(Values(), before);
  EXPECT_EQ(Push(StagedPushOf(placement_, 0, 1, 2, {0, 1}, 1, 1)).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(ParameterServiceTest, IncarnationsThatAreOverAreAborted) {
  Initialize();
  Announce(service(), {1});
  EXPECT_EQ(Push(PushOf(placement_, 0, 1, 1)).code(), absl::StatusCode::kAborted);
}

TEST_P(ParameterServiceTest, TellsItsStatusAndItsChief) {
  v1::ChiefHeartbeatRequest request;
  request.set_chief_address("chief-0:2222");
  v1::ShardStatus status;
  ASSERT_TRUE(service()->ChiefHeartbeat(request, &status).ok());
  EXPECT_EQ(status.state(), v1::ShardStatus::EMPTY);
  EXPECT_EQ(status.config_hash(), kTestConfigHash);
  v1::FindChiefResponse found;
  ASSERT_TRUE(service()->FindChief({}, &found).ok());
  EXPECT_EQ(found.address(), "chief-0:2222");
}

TEST_P(ParameterServiceTest, FinishIsAnsweredAndEndsTheServer) {
  v1::FinishShardResponse response;
  EXPECT_TRUE(service()->Finish({}, &response).ok());
  EXPECT_TRUE(server_.end.raised());
}

}  // namespace
}  // namespace keelson
