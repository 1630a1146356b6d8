// What every ParameterService does, whether its caller is in the same process or behind gRPC.
#include "core/client/parameter_service.h"

#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/loopback_testing.h"
#include "ps_server/shard_testing.h"

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
  }

  ParameterService* service() { return remote_ == nullptr ? &server_.handler : remote_.get(); }
  void Initialize() {
    v1::InitializeShardResponse response;
    const absl::Status status =
        service()->Initialize(InitializeRequest(placement_, 0, "adam {}"), &response);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(response.status().state(), v1::ShardStatus::READY);
  }
  absl::Status Pull(const TestRequest& request) {
    const auto response = CallBulk(service(), BulkMethod::kPull, request);
    pulled_ = response.ok() ? *response : TestResponse();
    return response.status();
  }
  absl::Status Push(const TestRequest& request) {
    const auto response = CallBulk(service(), BulkMethod::kPush, request);
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
  std::unique_ptr<ParameterService> remote_;
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
  EXPECT_EQ(service()->WriteSnapshot({}, &response).code(), absl::StatusCode::kUnavailable);
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
  const auto response = CallBulk(service(), BulkMethod::kPushPull, PushOf(placement_, 0, 1, 1));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header.shard_step, 1);
  Arrays received;
  Receive(placement_, *response, &received);
  EXPECT_EQ(received, Values());
}

TEST_P(ParameterServiceTest, SnapshotBecomesABundle) {
  Initialize();
  const std::string prefix = NewTestDirectory() + "/model.ckpt-0";
  v1::WriteSnapshotRequest request;
  request.set_data_path(DataPath(prefix, 0, 1));
  v1::WriteSnapshotResponse response;
  ASSERT_TRUE(service()->WriteSnapshot(request, &response).ok());
  std::vector<BundleIndexEntry> entries;
  for (const auto& entry : response.entries()) entries.push_back({entry.key(), entry.entry()});
  ASSERT_TRUE(WriteBundleIndex(prefix, 1, std::move(entries)).ok());
  const auto bundle = BundleReader::Open(prefix);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto bias = (*bundle)->ReadTensor("dense/bias");
  ASSERT_TRUE(bias.ok()) << bias.status();
  EXPECT_EQ(std::vector<float>(bias->span().begin(), bias->span().end()),
            std::vector<float>(17, 0.25f));
}

TEST_P(ParameterServiceTest, TellsItsStatusAndItsChief) {
  v1::GetShardStatusRequest request;
  request.set_chief_address("chief-0:2222");
  v1::ShardStatus status;
  ASSERT_TRUE(service()->GetStatus(request, &status).ok());
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
