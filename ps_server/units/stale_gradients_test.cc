// What a server does about stale gradients.
#include <string>
#include <vector>

#include "core/checkpoint/bundle_reader.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Tests with the variable "scale", one element that starts as 0.25; all gradients are constants.
class StaleGradientsTest : public testing::Test {
 protected:
  absl::Status Initialize(const std::string& stale, const std::string& optimizer = "sgd {}") {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0, optimizer);
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString(stale, request.mutable_stale_gradients()));
    v1::InitializeShardResponse response;
    return server_.handler.Initialize(request, &response);
  }
  void Push(BulkMethod method, uint64_t incarnation, float gradient, int64_t pulled_shard_step) {
    TestRequest push = ConstantPushOf(placement_, 0, incarnation, ++sequence_, gradient);
    push.header.pulled_shard_step = pulled_shard_step;
    Send(method, push);
  }
  // Pushes for a worker with two steps under way. Its gradient was computed without the last answer
  // if `unseen` is 1.
  void PushOfTwo(uint64_t incarnation, float gradient, uint32_t unseen) {
    TestRequest push = ConstantPushOf(placement_, 0, incarnation, ++sequence_, gradient);
    push.header.steps_under_way = 2;
    push.header.unseen_pushes = unseen;
    Send(BulkMethod::kPushPull, push);
  }
  void Send(BulkMethod method, const TestRequest& push) {
    const auto response = CallBulk(&server_.handler, method, push);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->header.duplicate_blocks, 0u);
  }
  Arrays Pull(uint64_t incarnation, std::vector<uint64_t> known_versions = {}) {
    TestRequest pull = PullOf(placement_, 0);
    pull.header.incarnation = incarnation;
    pull.header.known_versions = std::move(known_versions);
    const auto response = CallBulk(&server_.handler, BulkMethod::kPull, pull);
    EXPECT_TRUE(response.ok()) << response.status();
    versions_.clear();
    for (const BlockHeader& block : response->header.blocks) versions_.push_back(block.version);
    Arrays arrays;
    Receive(placement_, *response, &arrays);
    return arrays;
  }
  // Pulls with an incarnation of no worker.
  float Value() { return Pull(0).at("scale").at(0); }

  const Placement placement_ = TestPlacement(1);
  TestServer server_;
  uint64_t sequence_ = 0;
  std::vector<uint64_t> versions_;
};

TEST_F(StaleGradientsTest, TheRateIsDividedByOneMoreThanTheStaleness) {
  ASSERT_TRUE(Initialize("scale_learning_rate: true").ok());
  float expected = 0.25f;
  for (int64_t staleness = 0; staleness < 5; ++staleness) {
    Push(BulkMethod::kPush, 1, 2, /*pulled_shard_step=*/0);
    expected -= kTestLearningRate / static_cast<float>(1 + staleness) * 2;
    EXPECT_FLOAT_EQ(Value(), expected);
  }
  Push(BulkMethod::kPush, 1, 2, 5);
  EXPECT_FLOAT_EQ(Value(), expected - kTestLearningRate * 2);
}

TEST_F(StaleGradientsTest, ByDefaultItIsNot) {
  ASSERT_TRUE(Initialize("").ok());
  for (int i = 0; i < 3; ++i) Push(BulkMethod::kPush, 1, 1, 0);
  EXPECT_FLOAT_EQ(Value(), 0.25f - 3 * kTestLearningRate);
}

// Then the corrected gradient is g + |g| * (value - value that the worker had).
constexpr char kCompensation[] = "delay_compensation { lambda: 1 decay: 0 epsilon: 1e-30 }";

TEST_F(StaleGradientsTest, CorrectsFromTheValuesThatTheWorkerPulled) {
  ASSERT_TRUE(Initialize(kCompensation).ok());
  Pull(1);
  Push(BulkMethod::kPush, 2, 1, 0);  // an unknown worker
  EXPECT_FLOAT_EQ(Value(), -0.25f);
  Push(BulkMethod::kPush, 1, 2, 0);  // 2 + 2 * (-0.25 - 0.25) = 1
  EXPECT_FLOAT_EQ(Value(), -0.75f);
}

TEST_F(StaleGradientsTest, CorrectsFromTheValuesThatItsLastPushBrought) {
  ASSERT_TRUE(Initialize(kCompensation).ok());
  Push(BulkMethod::kPushPull, 1, 1, 0);
  EXPECT_FLOAT_EQ(Value(), -0.25f);
  Push(BulkMethod::kPush, 2, 1, 0);
  EXPECT_FLOAT_EQ(Value(), -0.75f);
  Push(BulkMethod::kPushPull, 1, 2, 0);  // 2 + 2 * (-0.75 + 0.25) = 1
  EXPECT_FLOAT_EQ(Value(), -1.25f);
  Push(BulkMethod::kPushPull, 1, 2, 0);  // nothing has moved since
  EXPECT_FLOAT_EQ(Value(), -2.25f);
}

TEST_F(StaleGradientsTest, WithTwoStepsUnderWayCorrectsFromTheValuesOfTheAnswerBefore) {
  ASSERT_TRUE(Initialize(kCompensation).ok());
  Pull(1);
  PushOfTwo(1, 1, 0);
  EXPECT_FLOAT_EQ(Value(), -0.25f);
  PushOfTwo(1, 2, 1);  // computed from the pull: 2 + 2 * (-0.25 - 0.25) = 1
  EXPECT_FLOAT_EQ(Value(), -0.75f);
  PushOfTwo(1, 2, 1);  // from the first answer: 2 + 2 * (-0.75 + 0.25) = 1
  EXPECT_FLOAT_EQ(Value(), -1.25f);
  Push(BulkMethod::kPush, 2, 1, 0);  // an unknown worker
  EXPECT_FLOAT_EQ(Value(), -1.75f);
  PushOfTwo(1, 2, 0);  // from the last answer, which came early: 2 + 2 * (-1.75 + 1.25) = 1
  EXPECT_FLOAT_EQ(Value(), -2.25f);
  Pull(1);
  PushOfTwo(1, 2, 0);  // nothing has moved since
  EXPECT_FLOAT_EQ(Value(), -3.25f);
  PushOfTwo(1, 2, 1);  // from that pull: 2 + 2 * (-3.25 + 2.25) = 0
  EXPECT_FLOAT_EQ(Value(), -3.25f);
}

TEST_F(StaleGradientsTest, ABlockThatThePullLeavesOutIsGivenAllTheSame) {
  ASSERT_TRUE(Initialize(kCompensation).ok());
  Pull(3);
  const std::vector<uint64_t> known = versions_;
  EXPECT_TRUE(Pull(1, known).empty());
  Push(BulkMethod::kPush, 2, 1, 0);
  Push(BulkMethod::kPush, 1, 2, 0);
  EXPECT_FLOAT_EQ(Value(), -0.75f);
}

TEST_F(StaleGradientsTest, LambdaZeroIsNoCompensationBitByBit) {
  Arrays without, with;
  for (const bool compensates : {false, true}) {
    ASSERT_TRUE(
        Initialize(compensates ? "delay_compensation { lambda: 0 }" : "", "momentum {}").ok());
    v1::InitializeShardRequest fresh = InitializeRequest(placement_, 0, "momentum {}");
    for (uint64_t step = 1; step <= 5; ++step) {
      Pull(step % 2);
      const TestRequest push = PushOf(placement_, 0, 1 + step % 3, step);
      ASSERT_TRUE(CallBulk(&server_.handler, BulkMethod::kPushPull, push).ok());
    }
    (compensates ? with : without) = Pull(0);
    // The next one starts over.
    fresh.set_restore_step(1);  // which is not there
    v1::InitializeShardResponse response;
    EXPECT_FALSE(server_.handler.Initialize(fresh, &response).ok());
  }
  EXPECT_EQ(with, without);
}

TEST_F(StaleGradientsTest, MeanSquaresAreInTheSnapshot) {
  ASSERT_TRUE(Initialize("delay_compensation {}", "momentum {}").ok());
  Push(BulkMethod::kPushPull, 1, 2, 0);
  const auto bundle = BundleReader::Open(WriteBundle({&server_.handler}, server_.model_dir, 1));
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto mean_square = (*bundle)->ReadTensor("dense/kernel/MeanSquare");
  ASSERT_TRUE(mean_square.ok()) << mean_square.status();
  EXPECT_THAT(mean_square->span(), Each(testing::FloatEq(0.05f * 4)));

  // Both continue in the same way; the workers' values are no longer known, so no gradient is
  // corrected at first.
  const auto restored = NewServers(1, server_.model_dir);
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0, "momentum {}");
  request.mutable_stale_gradients()->mutable_delay_compensation();
  request.set_restore_step(1);
  v1::InitializeShardResponse response;
  ASSERT_TRUE(restored[0]->handler.Initialize(request, &response).ok());
  ASSERT_TRUE(CallBulk(&restored[0]->handler, BulkMethod::kPush, PushOf(placement_, 0, 9, 9)).ok());
  ASSERT_TRUE(CallBulk(&server_.handler, BulkMethod::kPush, PushOf(placement_, 0, 9, 9)).ok());
  EXPECT_EQ(PullAll(placement_, restored), Pull(0));
}

TEST_F(StaleGradientsTest, AWorkerWhoseMembershipIsOverIsNotNotedAgain) {
  ASSERT_TRUE(Initialize(kCompensation).ok());
  Pull(1);
  Announce(&server_.handler, {1});
  TestRequest pull = PullOf(placement_, 0);
  pull.header.incarnation = 1;
  EXPECT_EQ(CallBulk(&server_.handler, BulkMethod::kPull, pull).status().code(),
            absl::StatusCode::kAborted);
}

TEST_F(StaleGradientsTest, RoundsAreNotCorrected) {
  ASSERT_TRUE(Initialize(kCompensation).ok());
  Pull(1);
  Push(BulkMethod::kPush, 2, 1, 0);
  const TestRequest staged = StagedPushOf(placement_, 0, 1, 1, {0, 1}, 1, 2);
  ASSERT_TRUE(CallBulk(&server_.handler, BulkMethod::kPush, staged).ok());
  ASSERT_TRUE(CommitRound(&server_.handler, {0, 1}, 1).ok());
  EXPECT_FLOAT_EQ(Value(), -0.25f - 1);
}

TEST_F(StaleGradientsTest, SettingsThatMakeNoSenseAreRefused) {
  const absl::Status status = Initialize("delay_compensation { decay: 1 }");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("consistency.stale_gradients.delay_compensation.decay"));
}

}  // namespace
}  // namespace keelson
