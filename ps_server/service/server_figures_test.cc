#include "ps_server/service/server_figures.h"

#include <optional>

#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

BulkRequest PushBy(int index, bool last_part = true) {
  BulkRequest request;
  request.role = v1::ROLE_WORKER;
  request.task_index = static_cast<uint32_t>(index);
  request.last_part = last_part;
  return request;
}

void Count(const BulkRequest& request, int64_t staleness, FigureCounter* counter) {
  BulkResponse response;
  response.staleness = staleness;
  counter->CountPush(request, response, 100, 10);
}

TEST(FigureCounterTest, StalenessHasABucketForEachBound) {
  FigureCounter counter;
  for (const int64_t staleness : {0, 0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 1000}) {
    Count(PushBy(0), staleness, &counter);
  }
  const ServerFigures figures = counter.figures();
  ASSERT_EQ(figures.staleness.size(), 1u);
  EXPECT_THAT(figures.staleness[0].counts, ElementsAre(2, 1, 1, 2, 2, 2, 2, 2, 2));
  EXPECT_EQ(figures.staleness[0].sum, 1259);
}

TEST(FigureCounterTest, StalenessIsByTask) {
  FigureCounter counter;
  Count(PushBy(2), 1, &counter);
  Count(PushBy(0), 3, &counter);
  Count(PushBy(2), 1, &counter);
  BulkRequest nobody = PushBy(0);
  nobody.role = 0;
  Count(nobody, 3, &counter);
  const ServerFigures figures = counter.figures();
  ASSERT_EQ(figures.staleness.size(), 2u);
  EXPECT_EQ(figures.staleness[0].task.ToString(), "worker-0");
  EXPECT_EQ(figures.staleness[0].sum, 3);
  EXPECT_EQ(figures.staleness[1].task.ToString(), "worker-2");
  EXPECT_EQ(figures.staleness[1].sum, 2);
  EXPECT_EQ(figures.pushes, 4);
}

TEST(FigureCounterTest, APushCountsWithItsLastMessageAndOnce) {
  FigureCounter counter;
  Count(PushBy(0, /*last_part=*/false), 0, &counter);
  EXPECT_EQ(counter.figures().pushes, 0);
  EXPECT_THAT(counter.figures().staleness, IsEmpty());
  Count(PushBy(0), 0, &counter);
  BulkResponse repeated;
  repeated.duplicate_blocks = 3;
  counter.CountPush(PushBy(0), repeated, 100, 10);
  const ServerFigures figures = counter.figures();
  EXPECT_EQ(figures.pushes, 1);
  EXPECT_EQ(figures.repeated_pushes, 1);
  EXPECT_EQ(figures.duplicate_blocks, 3);
  EXPECT_EQ(figures.pushed_bytes, 300);
  EXPECT_EQ(figures.pulled_bytes, 30);
}

TEST(FigureCounterTest, CallsAreInProgressWhileTheirScopeLives) {
  FigureCounter counter;
  std::optional<FigureCounter::CallScope> first(std::in_place, &counter);
  const FigureCounter::CallScope second(&counter);
  EXPECT_EQ(counter.figures().calls_in_progress, 2);
  first.reset();
  EXPECT_EQ(counter.figures().calls_in_progress, 1);
}

TEST(FigureCounterTest, SnapshotsAreSummedUp) {
  FigureCounter counter;
  counter.CountSnapshot(1000, absl::Seconds(2), absl::Microseconds(30));
  counter.CountSnapshot(500, absl::Seconds(1), absl::Microseconds(20));
  counter.CountFailedSnapshot();
  const ServerFigures figures = counter.figures();
  EXPECT_EQ(figures.snapshots, 2);
  EXPECT_EQ(figures.failed_snapshots, 1);
  EXPECT_EQ(figures.snapshot_bytes, 1500);
  EXPECT_EQ(figures.snapshot_time, absl::Seconds(3));
  EXPECT_EQ(figures.cut_time, absl::Microseconds(50));
  EXPECT_EQ(figures.longest_cut, absl::Microseconds(30));
}

TEST(HandlerFiguresTest, CountWhatTheCallsDo) {
  const Placement placement = TestPlacement(1);
  TestServer server;
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(server.handler.Initialize(InitializeRequest(placement, 0), &initialized).ok());
  const auto push = [&](TestRequest request) {
    request.header.role = v1::ROLE_WORKER;
    CallBulk(&server.handler, BulkMethod::kPush, request).status().IgnoreError();
  };
  push(PushOf(placement, 0, 1, 1));
  push(PushOf(placement, 0, 1, 1));
  push(PushOf(placement, 0, 2, 1));
  push(StagedPushOf(placement, 0, 2, 2, {0, 2}, 1, 1));
  push(StagedPushOf(placement, 0, 2, 3, {0, 1}, 1, 1));
  ASSERT_TRUE(CommitRound(&server.handler, {0, 2}, 1).ok());
  PullOf(placement, 0);
  ASSERT_TRUE(CallBulk(&server.handler, BulkMethod::kPull, PullOf(placement, 0)).ok());
  Announce(&server.handler, {1});
  push(PushOf(placement, 0, 1, 2));
  v1::WriteSnapshotResponse written;
  ASSERT_TRUE(server.handler.WriteSnapshot(SnapshotRequest(1), &written).ok());

  const ServerFigures figures = server.handler.figures();
  EXPECT_EQ(figures.pulls, 1);
  EXPECT_EQ(figures.pushes, 3);
  EXPECT_EQ(figures.repeated_pushes, 1);
  EXPECT_EQ(figures.outdated_pushes, 1);
  EXPECT_EQ(figures.committed_rounds, 1);
  EXPECT_EQ(figures.refused_calls, 1);
  EXPECT_EQ(figures.calls_in_progress, 0);
  EXPECT_EQ(figures.pushed_bytes, 4 * placement.ShardBytes(0));
  EXPECT_EQ(figures.pulled_bytes, placement.ShardBytes(0));
  EXPECT_EQ(figures.snapshots, 1);
  EXPECT_EQ(figures.snapshot_bytes, written.bytes_written());
  ASSERT_EQ(figures.staleness.size(), 1u);
  EXPECT_THAT(figures.staleness[0].counts, ElementsAre(1, 1, 1, 0, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace keelson
