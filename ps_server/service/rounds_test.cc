// Synchronous rounds as a server serves them: staged pushes and their commit.
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class RoundsTest : public testing::Test {
 protected:
  explicit RoundsTest(const std::string& optimizer = "momentum {}") : optimizer_(optimizer) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0, optimizer);
    request.mutable_learning_rate()->mutable_step()->add_boundaries(10);
    request.mutable_learning_rate()->mutable_step()->set_factor(0.5f);
    for (ParameterControl* service : {&handler_, &reference_.handler}) {
      v1::InitializeShardResponse response;
      EXPECT_TRUE(service->Initialize(request, &response).ok());
    }
  }

  absl::Status Stage(uint64_t incarnation, uint64_t sequence, const RoundId& round, float weight,
                     float gradient) {
    return Push(StagedPushOf(placement_, 0, incarnation, sequence, round, weight, gradient));
  }
  absl::Status Push(const TestRequest& request) {
    const auto response = CallBulk(&handler_, BulkMethod::kPush, request);
    pushed_ = response.ok() ? response->header : BulkResponse();
    return response.status();
  }
  // An ordinary push of one worker, at the same step.
  void PushToReference(int64_t step, float gradient) {
    TestRequest push = ConstantPushOf(placement_, 0, 1, static_cast<uint64_t>(step) + 1, gradient);
    push.header.step = step;
    EXPECT_TRUE(CallBulk(&reference_.handler, BulkMethod::kPush, push).ok());
  }
  Arrays Values(BulkHandler* server) {
    const auto response = CallBulk(server, BulkMethod::kPull, PullOf(placement_, 0));
    EXPECT_TRUE(response.ok()) << response.status();
    Arrays arrays;
    if (response.ok()) Receive(placement_, *response, &arrays);
    return arrays;
  }
  Arrays Values() { return Values(&handler_); }

  const std::string optimizer_;
  const Placement placement_ = TestPlacement(1);
  TestServer reference_;
  ManualClock clock_;
  StopSignal end_;
  ParameterHandler handler_{{.incarnation = 9,
                             .config_hash = kTestConfigHash,
                             .commit_threads = 3,
                             .model_dir = reference_.model_dir},
                            &clock_,
                            &end_};
  BulkResponse pushed_;
};

absl::StatusCode CodeOf(const absl::Status& status) { return status.code(); }

class WaitingPullsTest : public RoundsTest {
 protected:
  TestRequest PullFor(int64_t step) const {
    TestRequest pull = PullOf(placement_, 0);
    pull.header.step = step;
    return pull;
  }
  bool MayAnswer(int64_t step) {
    return handler_.MayAnswer(BulkMethod::kPull, MessageOf(PullFor(step)), [this] { ++woken_; });
  }
  absl::Status Pull(int64_t step) {
    return CallBulk(&handler_, BulkMethod::kPull, PullFor(step)).status();
  }

  int woken_ = 0;
};

TEST_F(WaitingPullsTest, APullForAStepWaitsForTheRoundBefore) {
  EXPECT_TRUE(MayAnswer(0)) << "as they are";
  EXPECT_FALSE(MayAnswer(4));
  ASSERT_TRUE(Stage(1, 1, {3, 1}, 1, 2).ok());
  EXPECT_EQ(Pull(4), absl::OutOfRangeError("the values for step 4 are not there yet"));
  EXPECT_EQ(woken_, 0);
  ASSERT_TRUE(CommitRound(&handler_, {3, 1}, 1).ok());
  EXPECT_EQ(woken_, 1);
  EXPECT_TRUE(MayAnswer(4));
  EXPECT_EQ(Pull(4), absl::OkStatus());
  EXPECT_FALSE(MayAnswer(5));
}

TEST_F(WaitingPullsTest, ARoundThatIsLostIsNotWaitedFor) {
  EXPECT_FALSE(MayAnswer(4));
  v1::CommitRoundRequest lost;
  *lost.mutable_header() = HeaderOf(kTestChief);
  lost.set_round(3);
  lost.set_contributions(1);
  lost.set_lost(true);
  v1::CommitRoundResponse response;
  ASSERT_EQ(handler_.CommitRound(lost, &response), absl::OkStatus());
  EXPECT_EQ(woken_, 1);
  EXPECT_TRUE(MayAnswer(4));
}

TEST_F(WaitingPullsTest, AShardThatGoesIsNotWaitedFor) {
  EXPECT_FALSE(MayAnswer(4));
  v1::FinishShardRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_moved(true);
  v1::FinishShardResponse response;
  ASSERT_EQ(handler_.Finish(request, &response), absl::OkStatus());
  EXPECT_EQ(woken_, 1);
  EXPECT_TRUE(MayAnswer(4));
  EXPECT_TRUE(absl::IsUnavailable(Pull(4)));
}

TEST_F(WaitingPullsTest, AJobThatIsOverIsNotWaitedFor) {
  EXPECT_FALSE(MayAnswer(4));
  v1::FinishShardRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  v1::FinishShardResponse response;
  ASSERT_EQ(handler_.Finish(request, &response), absl::OkStatus());
  EXPECT_EQ(woken_, 1);
  EXPECT_TRUE(MayAnswer(4));
}

TEST_F(WaitingPullsTest, WhatCannotBeAPullIsAnsweredAtOnce) {
  ByteRope malformed;
  malformed.AppendCopy("\xff\xff");
  EXPECT_TRUE(handler_.MayAnswer(BulkMethod::kPull, malformed, [] {}));
  EXPECT_TRUE(MayAnswer(-1));
  EXPECT_THAT(std::string(Pull(-1).message()), HasSubstr("step: expected at least 0, found -1"));
}

// Others have committed round 3, and their values are out.
TEST_F(RoundsTest, ALaterRoundDoesNotDropTheSumsOfOneThatIsToBeCommitted) {
  ASSERT_TRUE(Stage(1, 1, {3, 1}, 1, 2).ok());
  const absl::Status early = Stage(1, 2, {4, 1}, 1, 2);
  EXPECT_EQ(early.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(early.message()), HasSubstr("round 3 has not been committed here yet"));
  ASSERT_TRUE(CommitRound(&handler_, {3, 1}, 1).ok());
  EXPECT_TRUE(Stage(1, 2, {4, 1}, 1, 2).ok());
  EXPECT_TRUE(Stage(1, 3, {5, 2}, 1, 2).ok()) << "a newer attempt";
}

TEST_F(RoundsTest, KWorkersAreOneWithTheWholeBatch) {
  for (int64_t round = 8; round < 13; ++round) {  // across a change of the rate
    const auto sequence = static_cast<uint64_t>(round);
    ASSERT_TRUE(Stage(1, sequence, {round, 1}, 1, 2).ok());
    EXPECT_EQ(pushed_.shard_step, round - 8);
    ASSERT_TRUE(Stage(2, sequence, {round, 1}, 3, 6).ok());
    EXPECT_EQ(Values(), Values(&reference_.handler)) << "nothing moves before the commit";
    ASSERT_TRUE(CommitRound(&handler_, {round, 1}, 2).ok());
    PushToReference(round, 5);
    EXPECT_EQ(Values(), Values(&reference_.handler));
    const v1::ShardStatus status = StatusOf(&handler_);
    EXPECT_EQ(status.shard_step(), round - 7);
    EXPECT_EQ(status.committed_round(), round);
    EXPECT_EQ(status.open_round(), round);
    EXPECT_EQ(status.open_attempt(), 1u);
  }
}

TEST_F(RoundsTest, WhatANewChiefIsToldOfRoundsStaysTrue) {
  v1::ChiefHeartbeatRequest first;
  *first.mutable_header() = HeaderOf(1000);
  v1::ShardStatus status;
  ASSERT_EQ(handler_.ChiefHeartbeat(first, &status), absl::OkStatus());
  for (uint64_t i = 0; i < 300; ++i) {
    const auto round = static_cast<int64_t>(i);
    ASSERT_TRUE(Stage(1, i + 1, {round, 1}, 1, 2).ok());
    const auto commit = [&](uint64_t chief) {
      v1::CommitRoundRequest request;
      *request.mutable_header() = HeaderOf(chief);
      request.set_round(round);
      request.set_attempt(1);
      request.set_contributions(1);
      v1::CommitRoundResponse response;
      return handler_.CommitRound(request, &response);
    };
    // The chief of the round before commits while its successor comes.
    std::thread predecessor([&] { commit(1000 + i).IgnoreError(); });
    for (uint64_t pause = 0; pause < i % 30; ++pause) std::this_thread::yield();
    v1::ChiefHeartbeatRequest request;
    *request.mutable_header() = HeaderOf(1001 + i);
    v1::ShardStatus told;
    EXPECT_EQ(handler_.ChiefHeartbeat(request, &told), absl::OkStatus());
    predecessor.join();
    ASSERT_EQ(StatusOf(&handler_).committed_round(), told.committed_round());
    ASSERT_EQ(commit(1001 + i), absl::OkStatus());
  }
}

TEST_F(RoundsTest, NoneIsMinusOne) {
  v1::ShardStatus status = StatusOf(&handler_);
  EXPECT_EQ(status.committed_round(), -1);
  EXPECT_EQ(status.open_round(), -1);
  TestServer empty;
  EXPECT_EQ(StatusOf(&empty.handler).committed_round(), -1);
}

TEST_F(RoundsTest, RepeatedPushesCountOnce) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 2).ok());
    EXPECT_EQ(pushed_.duplicate_blocks > 0, i > 0);
  }
  ASSERT_TRUE(Stage(2, 1, {0, 1}, 1, 4).ok());
  ASSERT_TRUE(CommitRound(&handler_, {0, 1}, 2).ok());
  PushToReference(0, 3);
  EXPECT_EQ(Values(), Values(&reference_.handler));
}

TEST_F(RoundsTest, RepeatedCommitsCountOnce) {
  ASSERT_TRUE(Stage(1, 1, {4, 1}, 1, 2).ok());
  ASSERT_TRUE(CommitRound(&handler_, {4, 1}, 1).ok());
  const Arrays once = Values();
  EXPECT_TRUE(CommitRound(&handler_, {4, 1}, 1).ok());
  EXPECT_TRUE(CommitRound(&handler_, {3, 7}, 5).ok());
  EXPECT_EQ(Values(), once);
  EXPECT_EQ(StatusOf(&handler_).shard_step(), 1);
}

TEST_F(RoundsTest, PushesOfACommittedRoundAreRefused) {
  ASSERT_TRUE(Stage(1, 1, {4, 1}, 1, 2).ok());
  ASSERT_TRUE(CommitRound(&handler_, {4, 1}, 1).ok());
  for (const RoundId late : {RoundId{4, 1}, RoundId{4, 2}, RoundId{3, 9}}) {
    const absl::Status status = Stage(2, 1, late, 1, 2);
    EXPECT_EQ(CodeOf(status), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), late.ToString() + ": round 4 has been committed already");
  }
  EXPECT_TRUE(Stage(2, 1, {5, 1}, 1, 2).ok());
}

TEST_F(RoundsTest, ANewerAttemptDropsWhatCameBefore) {
  ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 100).ok());
  ASSERT_TRUE(Stage(2, 1, {0, 2}, 1, 2).ok());
  const absl::Status late = Stage(3, 1, {0, 1}, 1, 100);
  EXPECT_EQ(CodeOf(late), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(late.message(), "round 0, attempt 1: round 0, attempt 2 has begun already");
  const absl::Status commit = CommitRound(&handler_, {0, 1}, 1);
  EXPECT_EQ(CodeOf(commit), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Stage(3, 1, {0, 2}, 1, 4).ok()) << "the refused push left no trace";
  ASSERT_TRUE(CommitRound(&handler_, {0, 2}, 2).ok());
  PushToReference(0, 3);
  EXPECT_EQ(Values(), Values(&reference_.handler));
}

TEST_F(RoundsTest, ACommitNeedsExactlyItsContributions) {
  ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 2).ok());
  ASSERT_TRUE(Stage(2, 1, {0, 1}, 1, 2).ok());
  const Arrays before = Values();
  for (const uint32_t other : {1u, 3u}) {
    const absl::Status status = CommitRound(&handler_, {0, 1}, other);
    EXPECT_EQ(CodeOf(status), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(),
              absl::StrCat("round 0, attempt 1: variable conv/kernel, block 0: expected ", other,
                           " contributions, found 2"));
  }
  EXPECT_EQ(Values(), before);
  EXPECT_EQ(StatusOf(&handler_).committed_round(), -1);
  EXPECT_TRUE(CommitRound(&handler_, {0, 1}, 2).ok());
}

TEST_F(RoundsTest, WhoIsAskedCommitsNothing) {
  const auto ask = [&](uint32_t contributions) {
    v1::CommitRoundRequest request;
    *request.mutable_header() = HeaderOf(kTestChief);
    request.set_attempt(1);
    request.set_contributions(contributions);
    request.set_only_ask(true);
    v1::CommitRoundResponse response;
    return handler_.CommitRound(request, &response);
  };
  ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 2).ok());
  const Arrays before = Values();
  EXPECT_EQ(CodeOf(ask(2)), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ask(1), absl::OkStatus());
  EXPECT_EQ(Values(), before);
  EXPECT_EQ(StatusOf(&handler_).committed_round(), -1);
  EXPECT_TRUE(CommitRound(&handler_, {0, 1}, 1).ok());
  EXPECT_EQ(ask(1), absl::OkStatus()) << "it is committed";
}

TEST_F(RoundsTest, ACommitNeedsThemInEveryBlock) {
  ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 2).ok());
  TestRequest part = StagedPushOf(placement_, 0, 2, 1, {0, 1}, 1, 2);
  const BlockRange last = part.header.ranges.back();
  part.header.ranges.pop_back();
  part.payload.resize(part.payload.size() - 4 * placement_.PartitionElements(last.partition));
  ASSERT_TRUE(Push(part).ok());
  const Arrays before = Values();
  const absl::Status status = CommitRound(&handler_, {0, 1}, 2);
  EXPECT_EQ(CodeOf(status), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("variable scale, block 0: expected 2 contributions, found 1"));
  EXPECT_EQ(Values(), before);
}

TEST_F(RoundsTest, ACommitForAnotherShardIsRefused) {
  ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 2).ok());
  const Arrays before = Values();
  v1::CommitRoundRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_attempt(1);
  request.set_contributions(1);
  request.set_store_id(StatusOf(&handler_).store_id() + 1);
  v1::CommitRoundResponse response;
  EXPECT_EQ(CodeOf(handler_.CommitRound(request, &response)), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Values(), before);
  request.set_store_id(request.store_id() - 1);
  EXPECT_TRUE(handler_.CommitRound(request, &response).ok());
  EXPECT_NE(Values(), before);
}

TEST_F(RoundsTest, CommitsThatMakeNoSenseAreRefused) {
  const absl::Status status = CommitRound(&handler_, {0, 1}, 0);
  EXPECT_EQ(CodeOf(status), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("contributions: expected > 0, found 0"));
  TestServer empty;
  EXPECT_EQ(CodeOf(CommitRound(&empty.handler, {0, 1}, 1)), absl::StatusCode::kUnavailable);
}

TEST_F(RoundsTest, PushesThatMakeNoSenseAreRefused) {
  const auto refusal = [this](float weight, int64_t round) {
    const Arrays before = Values();
    const absl::Status status = Stage(1, 1, {round, 1}, weight, 2);
    EXPECT_EQ(CodeOf(status), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Values(), before);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(0, 3), "push: weight: expected a number > 0, found 0");
  EXPECT_EQ(refusal(-1, 3), "push: weight: expected a number > 0, found -1");
  EXPECT_EQ(refusal(NAN, 3), "push: weight: expected a number > 0, found nan");
  EXPECT_EQ(refusal(INFINITY, 3), "push: weight: expected a number > 0, found inf");
  EXPECT_EQ(refusal(1, -1), "push: step: expected at least 0, found -1");
  TestRequest push = StagedPushOf(placement_, 0, 1, 1, {3, 1}, 1, 2);
  push.header.round = -1;
  EXPECT_EQ(Push(push).message(), "push: round: expected at least 0, found -1");
  EXPECT_TRUE(Stage(1, 1, {3, 1}, 1, 2).ok());
  EXPECT_EQ(pushed_.duplicate_blocks, 0u);
}

TEST_F(RoundsTest, ValuesAreNotForPushesOfARound) {
  const TestRequest push = StagedPushOf(placement_, 0, 1, 1, {0, 1}, 1, 2);
  const absl::Status status = CallBulk(&handler_, BulkMethod::kPushPull, push).status();
  EXPECT_EQ(status, absl::InvalidArgumentError(
                        "pushpull: attempt: expected 0 in a call that brings values, found 1"));
}

TEST_F(RoundsTest, OrdinaryPushesGoOnBeside) {
  ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 2).ok());
  TestRequest push = ConstantPushOf(placement_, 0, 2, 1, 3);
  ASSERT_TRUE(Push(push).ok());
  PushToReference(0, 3);
  EXPECT_EQ(Values(), Values(&reference_.handler));
  ASSERT_TRUE(CommitRound(&handler_, {0, 1}, 1).ok());
  PushToReference(1, 2);
  EXPECT_EQ(Values(), Values(&reference_.handler));
}

TEST_F(RoundsTest, EveryFormatIsDecodedAndAdded) {
  for (const WireFormat format :
       {WireFormat::kFloat16, WireFormat::kBfloat16, WireFormat::kInt8, WireFormat::kTopK}) {
    const auto sequence = static_cast<uint64_t>(format) + 1;
    const auto step = static_cast<int64_t>(format);
    TestRequest push = EncodedPushOf(placement_, 0, 1, sequence, format, WireFormat::kFloat32);
    push.header.step = step;
    ASSERT_TRUE(CallBulk(&reference_.handler, BulkMethod::kPush, push).ok());
    push.header.round = step;
    push.header.attempt = 1;
    push.header.weight = 8;  // exact
    ASSERT_TRUE(Push(push).ok());
    ASSERT_TRUE(CommitRound(&handler_, {step, 1}, 1).ok());
    EXPECT_EQ(Values(), Values(&reference_.handler)) << WireFormatName(format);
  }
}

// A snapshot is taken between rounds as far as it is concerned: what is staged is not in it, so a
// restored shard has the round done again.
TEST_F(RoundsTest, ASnapshotHasNothingOfAnOpenRound) {
  ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 2).ok());
  WriteBundle({&handler_}, reference_.model_dir, 1);

  v1::InitializeShardRequest restore = InitializeRequest(placement_, 0, optimizer_);
  restore.set_restore_step(1);
  v1::InitializeShardResponse response;
  ASSERT_TRUE(handler_.Initialize(restore, &response).ok());
  ASSERT_TRUE(Stage(1, 1, {0, 1}, 1, 2).ok());
  EXPECT_GT(pushed_.duplicate_blocks, 0u);
  EXPECT_EQ(CodeOf(CommitRound(&handler_, {0, 1}, 1)), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Stage(1, 2, {0, 2}, 1, 2).ok());
  ASSERT_TRUE(CommitRound(&handler_, {0, 2}, 1).ok());
  PushToReference(0, 2);
  EXPECT_EQ(Values(), Values(&reference_.handler));
}

TEST_F(RoundsTest, ManyThreadsStageAndOneCommits) {
  constexpr int kWorkers = 4, kRounds = 20;
  for (int64_t round = 0; round < kRounds; ++round) {
    std::vector<std::thread> workers;
    for (int w = 0; w < kWorkers; ++w) {
      workers.emplace_back([this, round, w] {
        const auto incarnation = static_cast<uint64_t>(w) + 1;
        const auto sequence = static_cast<uint64_t>(round) + 1;
        // Twice, as after a lost answer.
        for (int i = 0; i < 2; ++i) {
          const TestRequest push = StagedPushOf(placement_, 0, incarnation, sequence, {round, 1}, 1,
                                                static_cast<float>(w));
          EXPECT_TRUE(CallBulk(&handler_, BulkMethod::kPush, push).ok());
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    ASSERT_TRUE(CommitRound(&handler_, {round, 1}, kWorkers).ok());
    PushToReference(round, 1.5f);
  }
  EXPECT_EQ(Values(), Values(&reference_.handler));
}

}  // namespace
}  // namespace keelson
