// A server that was asked to stop, as when its node is drained.
#include <string>

#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

constexpr uint64_t kLastCut = 77;

class LeavingTest : public testing::Test {
 protected:
  LeavingTest() {
    v1::InitializeShardResponse response;
    EXPECT_EQ(server_.handler.Initialize(InitializeRequest(placement_, 0), &response),
              absl::OkStatus());
  }

  absl::Status Push(uint64_t sequence) {
    return CallBulk(&server_.handler, BulkMethod::kPush, PushOf(placement_, 0, 1, sequence))
        .status();
  }
  // A push of round 0.
  absl::Status Stage(uint64_t incarnation) {
    return CallBulk(&server_.handler, BulkMethod::kPush,
                    StagedPushOf(placement_, 0, incarnation, 1, {0, 1}, 1, 1))
        .status();
  }
  absl::Status Commit(uint32_t contributions) {
    v1::CommitRoundRequest round;
    *round.mutable_header() = HeaderOf(kTestChief);
    round.set_round(0);
    round.set_attempt(1);
    round.set_contributions(contributions);
    v1::CommitRoundResponse committed;
    return server_.handler.CommitRound(round, &committed);
  }
  void Prepare(uint64_t id) {
    v1::PrepareCutRequest request;
    *request.mutable_header() = HeaderOf(kTestChief);
    request.set_cut_id(id);
    v1::PrepareCutResponse response;
    EXPECT_EQ(server_.handler.PrepareCut(request, &response), absl::OkStatus());
  }
  // What the chief is told, who tells the server which cut is saved.
  bool Leaving(uint64_t saved_cut = 0) {
    v1::ChiefHeartbeatRequest request;
    *request.mutable_header() = HeaderOf(kTestChief);
    request.set_saved_cut(saved_cut);
    v1::ShardStatus status;
    EXPECT_EQ(server_.handler.ChiefHeartbeat(request, &status), absl::OkStatus());
    EXPECT_EQ(server_.handler.chief_sign().unsaved, status.leaving());
    return status.leaving();
  }

  const Placement placement_ = TestPlacement(1);
  TestServer server_;
};

TEST_F(LeavingTest, LastsUntilASnapshotHasAll) {
  ASSERT_EQ(Push(1), absl::OkStatus());
  EXPECT_FALSE(Leaving());
  server_.handler.Leave();
  EXPECT_TRUE(Leaving());
  ASSERT_EQ(Push(2), absl::OkStatus()) << "taken until the cut";
  Prepare(kLastCut);
  EXPECT_TRUE(Leaving());
  EXPECT_TRUE(Leaving(kLastCut + 1)) << "an earlier cut";
  EXPECT_FALSE(Leaving(kLastCut));
}

TEST_F(LeavingTest, EndsWhenTheShardHasGone) {
  ASSERT_EQ(Push(1), absl::OkStatus());
  server_.handler.Leave();
  EXPECT_TRUE(Leaving());
  v1::FinishShardRequest moved;
  *moved.mutable_header() = HeaderOf(kTestChief);
  moved.set_moved(true);
  v1::FinishShardResponse response;
  ASSERT_EQ(server_.handler.Finish(moved, &response), absl::OkStatus());
  EXPECT_FALSE(Leaving());
  EXPECT_TRUE(server_.handler.CloseIfSaved());
  EXPECT_FALSE(server_.handler.finished()) << "the job goes on elsewhere";
  EXPECT_TRUE(absl::IsUnavailable(Push(2)));
}

TEST_F(LeavingTest, SaysThatItWasAskedToStopWhateverItHolds) {
  v1::ShardStatus status;
  ASSERT_EQ(server_.handler.GetStatus({}, &status), absl::OkStatus());
  EXPECT_FALSE(status.asked_to_stop());
  server_.handler.Leave();
  ASSERT_EQ(server_.handler.GetStatus({}, &status), absl::OkStatus());
  EXPECT_TRUE(status.asked_to_stop());
  EXPECT_FALSE(status.leaving());
}

TEST_F(LeavingTest, NothingIsAppliedAfterTheCut) {
  server_.handler.Leave();
  Prepare(kLastCut);
  EXPECT_EQ(Push(1).code(), absl::StatusCode::kUnavailable) << "the successor takes it";
  EXPECT_EQ(Commit(1).code(), absl::StatusCode::kUnavailable);
}

// Other servers have its pushes, too, and may commit it.
TEST_F(LeavingTest, LastsUntilARoundUnderWayIsCommittedAndSaved) {
  ASSERT_EQ(Stage(1), absl::OkStatus());
  server_.handler.Leave();
  EXPECT_TRUE(Leaving());
  EXPECT_FALSE(server_.handler.CloseIfSaved());
  ASSERT_EQ(Stage(2), absl::OkStatus());
  ASSERT_EQ(Commit(2), absl::OkStatus());
  EXPECT_TRUE(Leaving());
  Prepare(kLastCut);
  EXPECT_FALSE(Leaving(kLastCut));
}

TEST_F(LeavingTest, LosesARoundThatWasNotCompleteAtTheLastCut) {
  ASSERT_EQ(Stage(1), absl::OkStatus());
  server_.handler.Leave();
  Prepare(kLastCut);
  EXPECT_TRUE(Leaving());
  EXPECT_FALSE(Leaving(kLastCut));
  EXPECT_EQ(Stage(2).code(), absl::StatusCode::kUnavailable);
}

TEST_F(LeavingTest, NothingIsAppliedOnceItIsClosed) {
  server_.handler.Leave();
  ASSERT_EQ(Push(1), absl::OkStatus());
  EXPECT_FALSE(server_.handler.CloseIfSaved()) << "the push would be lost";
  ASSERT_EQ(Push(2), absl::OkStatus());
  Prepare(kLastCut);
  EXPECT_FALSE(Leaving(kLastCut));
  EXPECT_TRUE(server_.handler.CloseIfSaved());
}

TEST_F(LeavingTest, ClosesWithoutACut) {
  server_.handler.Leave();
  EXPECT_TRUE(server_.handler.CloseIfSaved());
  EXPECT_EQ(Push(1).code(), absl::StatusCode::kUnavailable);
}

// What a step of several messages has changed is lost otherwise, although it does not count yet.
TEST_F(LeavingTest, NeedsASnapshotOfAPartOfAPush) {
  TestRequest push = PushOf(placement_, 0, 1, 1);
  push.header.last_part = false;
  ASSERT_EQ(CallBulk(&server_.handler, BulkMethod::kPush, push).status(), absl::OkStatus());
  server_.handler.Leave();
  EXPECT_TRUE(Leaving());
}

TEST_F(LeavingTest, NeedsNoSnapshotWithoutUpdates) {
  server_.handler.Leave();
  EXPECT_FALSE(Leaving());
}

TEST_F(LeavingTest, NeedsNoOtherSnapshotThanTheLastOne) {
  ASSERT_EQ(Push(1), absl::OkStatus());
  Prepare(kLastCut);
  EXPECT_FALSE(Leaving(kLastCut));
  server_.handler.Leave();
  EXPECT_FALSE(Leaving(kLastCut));
  ASSERT_EQ(Push(2), absl::OkStatus());
  EXPECT_TRUE(Leaving(kLastCut));
}

}  // namespace
}  // namespace keelson
