#include "chief/servers/server_state.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

v1::ShardStatus StateOf(v1::ShardStatus::State state, uint64_t incarnation) {
  v1::ShardStatus status;
  status.set_state(state);
  status.set_incarnation(incarnation);
  return status;
}

TEST(ServerStateTest, FollowsWhatTheServerSays) {
  const absl::Time now = absl::FromUnixSeconds(1);
  ServerView server;
  server.NoteSilence(now);
  EXPECT_EQ(server.kind, ServerView::kWaiting) << "it is expected still";
  server.NoteAnswer(StateOf(v1::ShardStatus::EMPTY, 1), now);
  EXPECT_EQ(server.kind, ServerView::kRestoring);
  server.NoteReady(now + absl::Seconds(1));
  server.NoteAnswer(StateOf(v1::ShardStatus::READY, 1), now + absl::Seconds(2));
  EXPECT_EQ(server.kind, ServerView::kAlive);
  EXPECT_EQ(server.since, now + absl::Seconds(1));
  EXPECT_EQ(server.restarts, 0);
  server.NoteSilence(now + absl::Seconds(3));
  server.NoteSilence(now + absl::Seconds(4));
  EXPECT_EQ(server.kind, ServerView::kLost);
  EXPECT_EQ(server.since, now + absl::Seconds(3));
  server.NoteAnswer(StateOf(v1::ShardStatus::EMPTY, 2), now + absl::Seconds(5));
  EXPECT_EQ(server.kind, ServerView::kRestoring);
  EXPECT_EQ(server.restarts, 1);
  server.NoteEnd(now + absl::Seconds(6));
  EXPECT_EQ(ServerKindName(server.kind), "left");
}

TEST(ServerStateTest, IsNamedByWhatHoldsTheShard) {
  ServerView server;
  server.task.index = 2;
  EXPECT_EQ(server.name(), "ps-2");
  server.host = Task{Role::kWorker, 1};
  EXPECT_EQ(server.name(), "shard-2 of worker-1");
}

}  // namespace
}  // namespace keelson
