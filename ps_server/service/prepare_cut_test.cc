// Cuts that are prepared before they are written.
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kCut = 77;

class PrepareCutTest : public testing::Test {
 protected:
  PrepareCutTest() { Initialize(kTestChief); }

  void Initialize(uint64_t chief) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
    *request.mutable_header() = HeaderOf(chief);
    v1::InitializeShardResponse response;
    const absl::Status status = server_.handler.Initialize(request, &response);
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::Status Prepare(uint64_t id, uint64_t chief = kTestChief) {
    v1::PrepareCutRequest request;
    *request.mutable_header() = HeaderOf(chief);
    request.set_cut_id(id);
    prepared_.Clear();
    return server_.handler.PrepareCut(request, &prepared_);
  }
  absl::Status Write(uint64_t id, int64_t step = 1, uint64_t chief = kTestChief) {
    v1::WriteSnapshotRequest request = SnapshotRequest(step);
    *request.mutable_header() = HeaderOf(chief);
    request.set_cut_id(id);
    written_.Clear();
    return server_.handler.WriteSnapshot(request, &written_);
  }
  void Push(uint64_t sequence) {
    const auto pushed =
        CallBulk(&server_.handler, BulkMethod::kPush, PushOf(placement_, 0, 1, sequence));
    ASSERT_TRUE(pushed.ok()) << pushed.status();
  }
  void ExpectGone(uint64_t id, uint64_t chief = kTestChief) {
    const absl::Status status = Write(id, 1, chief);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("cut ", id)));
  }

  const Placement placement_ = TestPlacement(1);
  TestServer server_;
  v1::PrepareCutResponse prepared_;
  v1::WriteSnapshotResponse written_;
};

TEST_F(PrepareCutTest, IsWrittenAsItWas) {
  Push(1);
  ASSERT_EQ(Prepare(kCut), absl::OkStatus());
  EXPECT_EQ(prepared_.shard_step(), 1);
  EXPECT_EQ(prepared_.committed_round(), -1);
  Push(2);
  ASSERT_EQ(Write(kCut), absl::OkStatus());
  EXPECT_EQ(written_.shard_step(), 1);
}

TEST_F(PrepareCutTest, IsWrittenOnce) {
  ASSERT_EQ(Prepare(kCut), absl::OkStatus());
  ASSERT_EQ(Write(kCut), absl::OkStatus());
  ExpectGone(kCut);
}

TEST_F(PrepareCutTest, TheNextOneTakesItsPlace) {
  ASSERT_EQ(Prepare(kCut), absl::OkStatus());
  ASSERT_EQ(Prepare(kCut + 1), absl::OkStatus());
  ExpectGone(kCut);
  EXPECT_EQ(Write(kCut + 1), absl::OkStatus());
}

TEST_F(PrepareCutTest, IsDroppedAfterAMinute) {
  ASSERT_EQ(Prepare(kCut), absl::OkStatus());
  server_.clock.Advance(absl::Seconds(59));
  Push(1);
  server_.clock.Advance(absl::Seconds(1));
  Push(2);
  ExpectGone(kCut);
}

TEST_F(PrepareCutTest, AnotherChiefsCallDropsIt) {
  ASSERT_EQ(Prepare(kCut), absl::OkStatus());
  v1::ChiefHeartbeatRequest heartbeat;
  *heartbeat.mutable_header() = HeaderOf(kTestChief + 1);
  v1::ShardStatus status;
  ASSERT_EQ(server_.handler.ChiefHeartbeat(heartbeat, &status), absl::OkStatus());
  ExpectGone(kCut, kTestChief + 1);
  EXPECT_EQ(Write(kCut).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Prepare(kCut).code(), absl::StatusCode::kAborted);
}

TEST_F(PrepareCutTest, GoesWithItsShard) {
  ASSERT_EQ(Prepare(kCut), absl::OkStatus());
  Initialize(kTestChief + 1);
  ExpectGone(kCut, kTestChief + 1);
}

TEST_F(PrepareCutTest, NeedsAShardAndANumber) {
  EXPECT_EQ(Prepare(0),
            absl::InvalidArgumentError("PrepareCut: cut_id: expected a number other than 0"));
  TestServer empty;
  v1::PrepareCutRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_cut_id(kCut);
  EXPECT_EQ(empty.handler.PrepareCut(request, &prepared_).code(), absl::StatusCode::kUnavailable);
  request.set_store_id(StatusOf(&server_.handler).store_id());
  EXPECT_EQ(server_.handler.PrepareCut(request, &prepared_), absl::OkStatus());
  request.set_store_id(request.store_id() + 1);
  EXPECT_EQ(server_.handler.PrepareCut(request, &prepared_).code(), absl::StatusCode::kUnavailable)
      << "of another store than the chief's";
}

// ---- Rounds in snapshots.

class CommittedRoundTest : public PrepareCutTest {
 protected:
  void Commit(int64_t round) {
    for (const uint64_t worker : {1, 2}) {
      const auto pushed =
          CallBulk(&server_.handler, BulkMethod::kPush,
                   StagedPushOf(placement_, 0, worker, static_cast<uint64_t>(round) + 1, {round, 5},
                                /*weight=*/1, /*gradient=*/1));
      ASSERT_TRUE(pushed.ok()) << pushed.status();
    }
    ASSERT_EQ(CommitRound(&server_.handler, {round, 5}, 2), absl::OkStatus());
  }
  v1::ShardStatus Status() { return StatusOf(&server_.handler); }
  absl::Status Restore(std::optional<int64_t> committed_round) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
    request.set_restore_step(1);
    if (committed_round.has_value()) request.set_committed_round(*committed_round);
    v1::InitializeShardResponse response;
    return server_.handler.Initialize(request, &response);
  }
};

TEST_F(CommittedRoundTest, IsRestoredWithItsContributions) {
  Commit(0);
  Commit(1);
  ASSERT_EQ(Prepare(kCut), absl::OkStatus());
  EXPECT_EQ(prepared_.committed_round(), 1);
  const std::string prefix = WriteBundle({&server_.handler}, server_.model_dir, 1);
  Commit(2);
  ASSERT_EQ(Restore(std::nullopt), absl::OkStatus());
  EXPECT_EQ(Status().committed_round(), 1);
  EXPECT_EQ(Status().committed_contributions(), 2u);
  // What is in the values is not applied again.
  EXPECT_EQ(CallBulk(&server_.handler, BulkMethod::kPush,
                     StagedPushOf(placement_, 0, 3, 1, {1, 6}, /*weight=*/1, /*gradient=*/1))
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CommittedRoundTest, OfARestoredShardIsThatOfTheJob) {
  Commit(0);
  WriteBundle({&server_.handler}, server_.model_dir, 1);
  Commit(1);
  ASSERT_EQ(Restore(1), absl::OkStatus());
  EXPECT_EQ(Status().committed_round(), 1);
}

TEST_F(CommittedRoundTest, ALostRoundCountsWithoutItsPushes) {
  Commit(0);
  const int64_t step = Status().shard_step();
  v1::CommitRoundRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_round(1);
  request.set_attempt(5);
  request.set_contributions(2);
  request.set_lost(true);
  v1::CommitRoundResponse response;
  ASSERT_EQ(server_.handler.CommitRound(request, &response), absl::OkStatus());
  EXPECT_EQ(Status().committed_round(), 1);
  EXPECT_EQ(Status().committed_contributions(), 2u);
  EXPECT_EQ(Status().shard_step(), step);
}

}  // namespace
}  // namespace keelson
