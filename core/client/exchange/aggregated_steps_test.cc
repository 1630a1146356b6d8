// Steps of a ShardedParameterClient whose gradients the servers add up for a round.
#include <algorithm>

#include "core/client/sharded_parameter_client_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// Compares millions of values, for which a matcher would take seconds.
bool AllAre(absl::Span<const float> values, float expected) {
  return std::all_of(values.begin(), values.end(), [=](float value) { return value == expected; });
}

class AggregatedStepsTest : public ModesTestBase {
 protected:
  // "w" is two messages.
  AggregatedStepsTest()
      : ModesTestBase({{"w", Shape({2000, 1000}), {}}}), client_(Create(ModeOptions())) {
    EXPECT_TRUE(client_->Pull().ok());
    shard_.calls.clear();
  }

  absl::StatusOr<std::optional<PushResult>> Step(int64_t step, float gradient,
                                                 std::optional<Aggregation> aggregation) {
    client_->Begin(step, aggregation);
    const absl::Span<float> array = client_->gradients()[0];
    std::fill(array.begin(), array.end(), gradient);
    client_->Offer(0);
    return client_->End();
  }
  PushResult StageStep(int64_t step, float gradient, const Aggregation& aggregation) {
    const auto result = Step(step, gradient, aggregation);
    EXPECT_TRUE(result.ok() && result->has_value()) << result.status();
    return result.ok() && result->has_value() ? **result : PushResult();
  }

  const std::unique_ptr<ShardedParameterClient> client_;
};

INSTANTIATE_TEST_SUITE_P(Modes, AggregatedStepsTest, testing::ValuesIn(AllModes()), NameOfMode);

TEST_P(AggregatedStepsTest, ArePushedAndBringNothingBack) {
  const PushResult result = StageStep(5, 2, {5, 3, 100});
  EXPECT_EQ(result.step, 5);
  EXPECT_FALSE(result.refused);
  EXPECT_GT(result.bytes_pushed, 8'000'000);
  EXPECT_LT(result.bytes_pulled, 1000);
  ASSERT_EQ(shard_.calls.size(), 2u);
  for (const FakeShard::Call& call : shard_.calls) {
    EXPECT_EQ(call.method, BulkMethod::kPush);
    EXPECT_EQ(call.request.step, 5);
    EXPECT_EQ(call.request.round, 5);
    EXPECT_EQ(call.request.attempt, 3u);
    EXPECT_EQ(call.request.weight, 100);
    EXPECT_EQ(call.request.sequence, 1u);
  }
  EXPECT_TRUE(AllAre(client_->values()[0], 1));
}

TEST_P(AggregatedStepsTest, TheRoundsValuesComeWithTheNextPull) {
  for (int64_t round = 0; round < 3; ++round) {
    StageStep(round, 2, {round, 1, 10});
    EXPECT_TRUE(AllAre(client_->values()[0], 1 - 2 * static_cast<float>(round)));
    shard_.CommitRound();
    ASSERT_TRUE(client_->Pull().ok());
    EXPECT_TRUE(AllAre(client_->values()[0], 1 - 2 * static_cast<float>(round + 1)));
  }
  EXPECT_EQ(shard_.calls.back().method, BulkMethod::kPull);
}

TEST_P(AggregatedStepsTest, TheNextValuesAreAskedForAhead) {
  StageStep(0, 2, {0, 1, 10});
  client_->PullAhead(1);
  shard_.CommitRound();
  ASSERT_TRUE(client_->PullFor(1, nullptr).ok());
  EXPECT_TRUE(AllAre(client_->values()[0], -1));
  EXPECT_EQ(shard_.calls.size(), 4u) << "two messages each way";
  EXPECT_EQ(shard_.calls.back().method, BulkMethod::kPull);
  EXPECT_EQ(shard_.calls.back().request.step, 1);
}

TEST_P(AggregatedStepsTest, AnAttemptThatIsBegunAgainDoesNotWaitForItself) {
  StageStep(0, 2, {0, 1, 10});
  client_->PullAhead(1);
  ASSERT_TRUE(client_->PullFor(0, nullptr).ok());
  EXPECT_TRUE(AllAre(client_->values()[0], 1));
  StageStep(0, 2, {0, 2, 10});
  client_->PullAhead(1);
  shard_.CommitRound();
  ASSERT_TRUE(client_->PullFor(1, nullptr).ok());
  EXPECT_TRUE(AllAre(client_->values()[0], -1));
}

TEST_P(AggregatedStepsTest, WhatWasAskedForAheadIsNotTakenForALaterStep) {
  if (ModeOptions().background) GTEST_SKIP() << "the answer may be taken at any time";
  StageStep(0, 2, {0, 1, 10});
  client_->PullAhead(1);
  shard_.CommitRound();
  shard_.SetValues(7);
  shard_.CommitRound();
  ASSERT_TRUE(client_->PullFor(2, nullptr).ok());
  EXPECT_TRUE(AllAre(client_->values()[0], 7));
  EXPECT_EQ(shard_.calls.back().request.step, 2);
}

TEST_P(AggregatedStepsTest, AStepThatIsNotWantedIsNotWaitedFor) {
  StageStep(0, 2, {0, 1, 10});
  client_->PullAhead(1);
  std::atomic<int> asked{0};
  ASSERT_TRUE(client_->PullFor(1, [&] { return ++asked < 2; }).ok());
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(AllAre(client_->values()[0], 1));
}

TEST_P(AggregatedStepsTest, AClientMayGoWhileItWaits) {
  StageStep(0, 2, {0, 1, 10});
  client_->PullAhead(1);
}

TEST_P(AggregatedStepsTest, StandBesideOrdinaryOnes) {
  StageStep(0, 2, {0, 1, 1});
  shard_.CommitRound();
  ASSERT_TRUE(client_->Pull().ok());
  ASSERT_TRUE(Step(1, 3, std::nullopt).ok());
  const auto drained = client_->Drain();
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_EQ(drained->has_value(), GetParam().depth == 2);
  EXPECT_EQ(shard_.calls.back().method, BulkMethod::kPushPull);
  EXPECT_EQ(shard_.calls.back().request.attempt, 0u);
  EXPECT_EQ(shard_.calls.back().request.pulled_shard_step, 1);
  EXPECT_TRUE(AllAre(client_->values()[0], 1 - 2 - 3));
  StageStep(2, 1, {2, 2, 1});
  EXPECT_EQ(shard_.calls.back().request.pulled_shard_step, 2);
  EXPECT_TRUE(AllAre(client_->values()[0], -4));
  shard_.CommitRound();
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_TRUE(AllAre(client_->values()[0], -5));
}

TEST_P(AggregatedStepsTest, LostAnswersAreAskedForAgain) {
  int calls = 0;
  shard_.after = [&calls](auto*, auto*) {
    return ++calls <= 2 ? absl::UnavailableError("reset") : absl::OkStatus();
  };
  const PushResult result = StageStep(0, 4, {0, 1, 10});
  EXPECT_EQ(result.retries, 2);
  EXPECT_FALSE(result.refused);
  shard_.CommitRound();
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_TRUE(AllAre(client_->values()[0], -3));
}

TEST_P(AggregatedStepsTest, ARefusalIsAResultAndAllMessagesComeToTheirEnd) {
  int calls = 0;
  shard_.before = [&calls] {
    return ++calls == 1 ? absl::FailedPreconditionError("round 0, attempt 1: a newer one")
                        : absl::OkStatus();
  };
  EXPECT_TRUE(StageStep(0, 4, {0, 1, 10}).refused);
  EXPECT_EQ(shard_.calls.size(), 2u);
  EXPECT_FALSE(StageStep(0, 4, {0, 2, 10}).refused);
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_TRUE(AllAre(client_->values()[0], 1));
}

TEST_P(AggregatedStepsTest, FailedPreconditionOfAnOrdinaryStepIsFinal) {
  shard_.before = [] { return absl::FailedPreconditionError("no"); };
  const auto result = Step(0, 4, std::nullopt);
  EXPECT_FALSE(result.ok() && client_->Drain().ok());
  EXPECT_EQ(client_->Pull(), absl::FailedPreconditionError("no"));
}

TEST_P(AggregatedStepsTest, AbortedIsFinal) {
  shard_.before = [] { return absl::AbortedError("membership of worker-3 is over"); };
  EXPECT_EQ(Step(0, 4, Aggregation{0, 1, 1}).status(),
            absl::AbortedError("membership of worker-3 is over"));
}

TEST_P(AggregatedStepsTest, AShardThatStartsOverIsPulledWholeAfterwards) {
  int calls = 0;
  shard_.before = [&] {
    if (++calls == 2) shard_.StartOver(50);
    return absl::OkStatus();
  };
  StageStep(0, 4, {0, 1, 10});
  EXPECT_EQ(shard_.calls.size(), 2u);
  EXPECT_TRUE(AllAre(client_->values()[0], 1));
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_TRUE(AllAre(client_->values()[0], 50));
}

TEST_P(AggregatedStepsTest, ValuesInTheAnswerAreMalformed) {
  shard_.after = [](BulkResponse* response, std::string*) {
    response->blocks.push_back({0, 0, 7});
    return absl::OkStatus();
  };
  const absl::Status status = Step(0, 4, Aggregation{0, 1, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("ps-0: malformed answer to Push: expected no values"));
}

}  // namespace
}  // namespace keelson
