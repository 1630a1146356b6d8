#include "ps_server/service/hosted_shards.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/client/services/shard_control.h"
#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

// Shards 1 and 2 of three, of which the process hosts 1 by itself.
class HostedShardsTest : public testing::Test {
 protected:
  HostedShardsTest()
      : hosted_(std::make_shared<HostedShards>(std::vector<HostedShard>{
            {1, &one_.handler, &one_.handler}, {2, &two_.handler, &two_.handler}})),
        control_one_(1, hosted_),
        control_two_(2, hosted_),
        control_three_(3, hosted_) {}

  absl::Status Initialize(ParameterControl* control, size_t shard) {
    v1::InitializeShardResponse response;
    return control->Initialize(InitializeRequest(placement_, shard), &response);
  }

  const Placement placement_ = TestPlacement(3);
  TestServer one_;
  TestServer two_;
  const std::shared_ptr<HostedShards> hosted_;
  ShardControl control_one_;
  ShardControl control_two_;
  ShardControl control_three_;  // of a shard that is not hosted
};

constexpr char kNotHosted[] = "shard 3: expected one that this process hosts (1, 2), found none";

TEST_F(HostedShardsTest, ControlCallsGoToTheShardThatTheyName) {
  ASSERT_TRUE(Initialize(&control_two_, 2).ok());
  EXPECT_EQ(StatusOf(&one_.handler).state(), v1::ShardStatus::EMPTY);
  EXPECT_EQ(StatusOf(&two_.handler).shard(), 2u);
  ASSERT_TRUE(Initialize(hosted_.get(), 1).ok());
  EXPECT_EQ(StatusOf(&one_.handler).shard(), 1u);
  EXPECT_EQ(StatusOf(&control_one_).shard(), 1u);
  EXPECT_EQ(StatusOf(&control_two_).shard(), 2u);
  EXPECT_EQ(StatusOf(hosted_.get()).shard(), 1u);
}

TEST_F(HostedShardsTest, BulkCallsGoToTheShardThatTheyName) {
  ASSERT_TRUE(Initialize(&control_one_, 1).ok());
  ASSERT_TRUE(Initialize(&control_two_, 2).ok());
  TestRequest push = PushOf(placement_, 2, 1, 1);
  push.header.shard = 3;
  ASSERT_TRUE(CallBulk(hosted_.get(), BulkMethod::kPush, push).ok());
  ASSERT_TRUE(CallBulk(hosted_.get(), BulkMethod::kPush, PushOf(placement_, 1, 1, 1)).ok());
  push.header.sequence = 2;
  ASSERT_TRUE(CallBulk(hosted_.get(), BulkMethod::kPush, push).ok());
  EXPECT_EQ(StatusOf(&one_.handler).shard_step(), 1);
  EXPECT_EQ(StatusOf(&two_.handler).shard_step(), 2);
}

TEST_F(HostedShardsTest, RefusesBulkCallsOfOtherShards) {
  TestRequest pull = PullOf(placement_, 0);
  pull.header.shard = 4;
  const absl::Status status = CallBulk(hosted_.get(), BulkMethod::kPull, pull).status();
  EXPECT_EQ(status, absl::UnavailableError(kNotHosted));
  ByteRope malformed;
  malformed.AppendCopy("\x0A");
  EXPECT_EQ(hosted_->Bulk(BulkMethod::kPull, std::move(malformed)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(HostedShardsTest, RefusesEachControlCallOfOtherShards) {
  const absl::Status refused = absl::FailedPreconditionError(kNotHosted);
  v1::InitializeShardResponse initialized;
  v1::PrepareCutResponse prepared;
  v1::WriteSnapshotResponse written;
  v1::ShardStatus status;
  v1::CommitRoundResponse committed;
  v1::FinishShardResponse finished;
  EXPECT_EQ(control_three_.Initialize({}, &initialized), refused);
  EXPECT_EQ(control_three_.PrepareCut({}, &prepared), refused);
  EXPECT_EQ(control_three_.WriteSnapshot({}, &written), refused);
  EXPECT_EQ(control_three_.StreamSnapshot(
                {}, [](absl::string_view) { return absl::OkStatus(); }, &written),
            refused);
  const auto none = []() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    return std::nullopt;
  };
  EXPECT_EQ(control_three_.InitializeStreamed({}, none, &initialized), refused);
  EXPECT_EQ(control_three_.ChiefHeartbeat({}, &status), refused);
  EXPECT_EQ(control_three_.CommitRound({}, &committed), refused);
  EXPECT_EQ(control_three_.GetStatus({}, &status), refused);
  EXPECT_EQ(control_three_.Finish({}, &finished), refused);
}

TEST_F(HostedShardsTest, EachShardIsCutAndStreamedByItself) {
  ASSERT_TRUE(Initialize(&control_one_, 1).ok());
  ASSERT_TRUE(Initialize(&control_two_, 2).ok());
  TestRequest push = PushOf(placement_, 2, 1, 1);
  push.header.shard = 3;
  ASSERT_TRUE(CallBulk(hosted_.get(), BulkMethod::kPush, push).ok());
  v1::PrepareCutRequest cut;
  *cut.mutable_header() = HeaderOf(kTestChief);
  cut.set_cut_id(9);
  v1::PrepareCutResponse prepared;
  ASSERT_TRUE(control_two_.PrepareCut(cut, &prepared).ok());
  EXPECT_EQ(prepared.shard_step(), 1);
  v1::StreamSnapshotRequest stream;
  *stream.mutable_header() = HeaderOf(kTestChief);
  stream.set_cut_id(9);
  v1::WriteSnapshotResponse end;
  size_t bytes = 0;
  const auto count = [&bytes](absl::string_view data) {
    bytes += data.size();
    return absl::OkStatus();
  };
  ASSERT_TRUE(control_two_.StreamSnapshot(stream, count, &end).ok());
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(end.shard_step(), 1);
}

TEST_F(HostedShardsTest, AnyShardSaysWhoTheChiefIs) {
  v1::ChiefHeartbeatRequest heartbeat;
  *heartbeat.mutable_header() = HeaderOf(kTestChief);
  heartbeat.set_chief_address("chief:1");
  v1::ShardStatus status;
  ASSERT_TRUE(control_two_.ChiefHeartbeat(heartbeat, &status).ok());
  v1::FindChiefResponse found;
  ASSERT_TRUE(control_one_.FindChief({}, &found).ok());
  EXPECT_EQ(found.address(), "chief:1");
}

TEST_F(HostedShardsTest, EachShardIsFinishedByItself) {
  v1::FinishShardRequest finish;
  *finish.mutable_header() = HeaderOf(kTestChief);
  v1::FinishShardResponse response;
  ASSERT_TRUE(control_two_.Finish(finish, &response).ok());
  EXPECT_TRUE(two_.handler.finished());
  EXPECT_FALSE(one_.handler.finished());
}

}  // namespace
}  // namespace keelson
