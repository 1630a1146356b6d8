#include "chief/servers/server_contacts.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);
const absl::Time kLater = kStart + absl::Seconds(5);

v1::ShardStatus AnswerOf(v1::ShardStatus::State state, uint64_t epoch = 0) {
  v1::ShardStatus status;
  status.set_state(state);
  status.set_member_epoch(epoch);
  status.set_incarnation(5);
  return status;
}

v1::ChiefHeartbeatRequest Storing(uint64_t version) {
  v1::ChiefHeartbeatRequest request;
  request.set_job_state("state");
  request.set_job_state_version(version);
  return request;
}

class ServerContactsTest : public testing::Test {
 protected:
  void Answer(size_t s, const v1::ShardStatus& status = AnswerOf(v1::ShardStatus::READY),
              const v1::ChiefHeartbeatRequest& request = {}, bool has_job = false) {
    contacts_.NoteAnswer(s, request, status, has_job, kLater);
  }

  ServerContacts contacts_{{{"ps-0", "a:1"}, {"ps-1", "b:2"}}, kStart};
};

TEST_F(ServerContactsTest, NobodyHasAnsweredAtFirst) {
  EXPECT_THAT(contacts_.Missing(), ElementsAre("ps-0 at a:1", "ps-1 at b:2"));
  EXPECT_FALSE(contacts_.MetAny());
  EXPECT_EQ(contacts_.stored_version(), 0u);
  EXPECT_EQ(contacts_.HolderOfJob(), "");
  const std::vector<ServerView> states = contacts_.States();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[1].task, (Task{Role::kPs, 1}));
  EXPECT_EQ(states[1].address, "b:2");
  EXPECT_EQ(states[1].kind, ServerView::kWaiting);
  EXPECT_EQ(states[1].since, kStart);
}

TEST_F(ServerContactsTest, AServerIsMissingUntilItAnswersAndWhenItIsSilent) {
  Answer(0);
  EXPECT_THAT(contacts_.Missing(), ElementsAre("ps-1 at b:2"));
  EXPECT_TRUE(contacts_.Answers(0));
  EXPECT_TRUE(contacts_.Serves(0));
  EXPECT_TRUE(contacts_.Met(0));
  EXPECT_EQ(contacts_.States()[0].kind, ServerView::kAlive);
  contacts_.NoteSilence(0, kLater);
  EXPECT_FALSE(contacts_.Answers(0));
  EXPECT_FALSE(contacts_.Serves(0));
  EXPECT_TRUE(contacts_.Met(0)) << "it has admitted this chief";
  EXPECT_EQ(contacts_.States()[0].kind, ServerView::kLost);
  Answer(0);
  contacts_.NoteMissing(0);
  EXPECT_FALSE(contacts_.Answers(0));
  EXPECT_EQ(contacts_.States()[0].kind, ServerView::kAlive) << "its next heartbeat tells";
}

TEST_F(ServerContactsTest, AServerWithoutItsShardDoesNotServe) {
  Answer(0, AnswerOf(v1::ShardStatus::EMPTY));
  EXPECT_TRUE(contacts_.Answers(0));
  EXPECT_FALSE(contacts_.Serves(0));
}

TEST_F(ServerContactsTest, AServerWithoutItsShardIsMissingUntilItHasIt) {
  Answer(0);
  Answer(1);
  EXPECT_THAT(contacts_.Missing(), IsEmpty());
  contacts_.NoteBroken(1);
  Answer(1, AnswerOf(v1::ShardStatus::EMPTY));
  EXPECT_THAT(contacts_.Missing(), ElementsAre("ps-1 at b:2"));
  contacts_.NoteReady(1, 7, kLater);
  EXPECT_THAT(contacts_.Missing(), IsEmpty());
  contacts_.NoteBroken(0);
  Answer(0, AnswerOf(v1::ShardStatus::READY));
  EXPECT_THAT(contacts_.Missing(), IsEmpty()) << "another call has made it ready";
  contacts_.NoteBroken(0);
  contacts_.ForgiveBroken();
  EXPECT_THAT(contacts_.Missing(), IsEmpty());
}

TEST_F(ServerContactsTest, AllServersKnowTheEpochThatTheLastOneKnows) {
  EXPECT_EQ(contacts_.known_epoch(), 0u);
  Answer(0, AnswerOf(v1::ShardStatus::READY, 8));
  EXPECT_EQ(contacts_.known_epoch(), 0u);
  Answer(1, AnswerOf(v1::ShardStatus::READY, 6));
  EXPECT_EQ(contacts_.known_epoch(), 6u);
  EXPECT_TRUE(contacts_.KnowsMembers(0, 8));
  EXPECT_FALSE(contacts_.KnowsMembers(1, 8));
  contacts_.NoteSilence(1, kLater);
  EXPECT_EQ(contacts_.known_epoch(), 6u) << "it may still take calls of others";
}

TEST_F(ServerContactsTest, AVersionIsStoredWhenAllThatAnswerHaveIt) {
  Answer(0, AnswerOf(v1::ShardStatus::READY), Storing(9));
  Answer(1, AnswerOf(v1::ShardStatus::READY), Storing(7));
  EXPECT_EQ(contacts_.stored_version(), 7u);
  Answer(1);
  EXPECT_EQ(contacts_.stored_version(), 7u) << "a heartbeat without state";
  contacts_.NoteSilence(1, kLater);
  EXPECT_EQ(contacts_.stored_version(), 9u);
  Answer(1, AnswerOf(v1::ShardStatus::EMPTY));
  EXPECT_EQ(contacts_.stored_version(), 0u) << "another process, which has nothing";
}

TEST_F(ServerContactsTest, AJobIsHeldByAServerWhoseShardNoChiefHasKeptYet) {
  Answer(0, AnswerOf(v1::ShardStatus::READY), {}, /*has_job=*/true);
  EXPECT_EQ(contacts_.HolderOfJob(), "ps-0");
  contacts_.NoteSilence(0, kLater);
  EXPECT_EQ(contacts_.HolderOfJob(), "");
  Answer(0, AnswerOf(v1::ShardStatus::READY), {}, /*has_job=*/true);
  contacts_.NoteKept(0, 7);
  EXPECT_EQ(contacts_.HolderOfJob(), "");
}

TEST_F(ServerContactsTest, AShardInAnotherStoreIsForeign) {
  v1::ShardStatus found = AnswerOf(v1::ShardStatus::READY);
  found.set_store_id(7);
  EXPECT_TRUE(contacts_.HoldsForeignShard(0, found));
  contacts_.NoteKept(0, 7);
  EXPECT_FALSE(contacts_.HoldsForeignShard(0, found));
  EXPECT_TRUE(contacts_.HoldsForeignShard(1, found));
  contacts_.NoteReady(1, 7, kLater);
  EXPECT_FALSE(contacts_.HoldsForeignShard(1, found));
  found.set_store_id(8);
  EXPECT_TRUE(contacts_.HoldsForeignShard(0, found));
  found.set_state(v1::ShardStatus::EMPTY);
  EXPECT_FALSE(contacts_.HoldsForeignShard(0, found)) << "it holds none";
}

TEST_F(ServerContactsTest, IsToldOnceOfAServerThatWaitsForAnotherChief) {
  EXPECT_TRUE(contacts_.NoteHeld(0));
  EXPECT_FALSE(contacts_.NoteHeld(0));
  EXPECT_TRUE(contacts_.NoteHeld(1));
}

constexpr Task kHost = {Role::kWorker, 1};

TEST(MovingHostTest, AnAddressIsThatOfTheHostWhereverItServes) {
  ServerContacts contacts(
      {{"shard-0 of worker-0", "a:1", Task{Role::kWorker, 0}}, {"shard-1 of worker-1", "", kHost}},
      kStart);
  EXPECT_THAT(contacts.Missing(), ElementsAre("shard-0 of worker-0 at a:1",
                                              "shard-1 of worker-1 (it has not registered)"));
  contacts.NoteAddress(kHost, "b:2");
  EXPECT_EQ(contacts.Missing()[1], "shard-1 of worker-1 at b:2");
  EXPECT_EQ(contacts.States()[1].address, "b:2");
  // It serves the other shard too, and moves with both.
  contacts.NoteMoved(0, {"shard-0 of worker-1", "", kHost}, AnswerOf(v1::ShardStatus::READY),
                     kLater);
  EXPECT_EQ(contacts.States()[0].address, "b:2");
  contacts.NoteAddress(kHost, "c:3");
  EXPECT_EQ(contacts.States()[0].address, "c:3");
  EXPECT_EQ(contacts.States()[1].address, "c:3");
  EXPECT_EQ(contacts.AddressOf({"", "", kHost}), "c:3");
  EXPECT_EQ(contacts.AddressOf({"", "a:1", Task{Role::kWorker, 0}}), "a:1");
  EXPECT_EQ(contacts.AddressOf({"", "d:4"}), "d:4") << "it is no host";
}

TEST(MovingHostTest, AtAnotherAddressMayBeAnotherStoreUntilItHasAnswered) {
  ServerContacts contacts({{"shard-1 of worker-1", "b:2", kHost}}, kStart);
  v1::ShardStatus answer = AnswerOf(v1::ShardStatus::READY);
  answer.set_store_id(7);
  contacts.NoteAnswer(0, {}, answer, /*has_job=*/true, kLater);
  contacts.NoteKept(0, 7);
  contacts.NoteAddress(kHost, "b:2");
  EXPECT_TRUE(contacts.Serves(0)) << "it is where it was";
  EXPECT_FALSE(contacts.MayLackPushes(0));
  contacts.NoteAddress(kHost, "c:3");
  EXPECT_FALSE(contacts.Serves(0));
  EXPECT_TRUE(contacts.MayLackPushes(0));
  contacts.NoteAnswer(0, {}, answer, /*has_job=*/true, kLater);
  EXPECT_TRUE(contacts.Serves(0));
  EXPECT_FALSE(contacts.MayLackPushes(0));
  answer.set_store_id(8);
  contacts.NoteAnswer(0, {}, answer, /*has_job=*/true, kLater);
  EXPECT_FALSE(contacts.Serves(0)) << "the shard of the job is in another store";
  EXPECT_TRUE(contacts.MayLackPushes(0));
  contacts.NoteReady(0, 9, kLater);
  EXPECT_TRUE(contacts.Serves(0));
}

TEST_F(ServerContactsTest, AServerThatIsToldTheEndIsAskedNothingMore) {
  Answer(0);
  contacts_.NoteEnd(0, kLater);
  EXPECT_EQ(contacts_.States()[0].kind, ServerView::kLeft);
  EXPECT_FALSE(contacts_.Answers(0));
}

}  // namespace
}  // namespace keelson
