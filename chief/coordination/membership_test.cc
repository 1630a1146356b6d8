#include "chief/coordination/membership.h"

#include "chief/coordination/member_ids_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kTakeover = absl::Seconds(1);
constexpr Task kWorker0 = {Role::kWorker, 0};
constexpr Task kWorker1 = {Role::kWorker, 1};
constexpr Task kPs0 = {Role::kPs, 0};

class MembershipTest : public testing::Test {
 protected:
  void Register(Task task, uint64_t incarnation) {
    ASSERT_EQ(membership_.Register(task, TestId(incarnation), "host:1"), absl::OkStatus());
  }
  // Lets the member's lease pass and be noticed.
  void Lose(Task task, uint64_t incarnation) {
    clock_.Advance(kLease);
    ASSERT_THAT(Expire(), ElementsAre(Field(&Member::incarnation, incarnation)));
    ASSERT_EQ(State(task), Member::kLost);
  }
  std::vector<Member> Expire() {
    membership_.ExpireLeases();
    return membership_.TakeEnded();
  }
  Member::State State(Task task) const { return membership_.Find(task)->state; }

  ManualClock clock_;
  Membership membership_{&clock_, kLease, kTakeover};
};

TEST_F(MembershipTest, TheSuspectedAreLostLongBeforeTheirLeaseHasPassed) {
  Register(kWorker0, 7);
  Register(kWorker1, 8);
  clock_.Advance(absl::Milliseconds(100));
  membership_.Suspect(kWorker0);
  membership_.Suspect(kPs0);
  EXPECT_THAT(Expire(), IsEmpty());
  clock_.Advance(Membership::kSuspectSilence);
  EXPECT_THAT(Expire(), ElementsAre(Field(&Member::incarnation, 7)));
  EXPECT_EQ(State(kWorker0), Member::kLost);
  EXPECT_EQ(State(kWorker1), Member::kAlive);
}

TEST_F(MembershipTest, PlacesAreThoseOfTheTasksThatTrain) {
  Register(kWorker1, 8);
  EXPECT_EQ(membership_.PlaceOf(8), 0);
  Register({Role::kEvaluator, 0}, 5);
  Register({Role::kChief, 0}, 6);
  Register(kWorker0, 7);
  EXPECT_EQ(membership_.PlaceOf(6), 0);
  EXPECT_EQ(membership_.PlaceOf(7), 1);
  EXPECT_EQ(membership_.PlaceOf(8), 2);
  ASSERT_EQ(membership_.Leave(kWorker0, TestId(7)), absl::OkStatus());
  EXPECT_EQ(membership_.PlaceOf(8), 1);
}

TEST_F(MembershipTest, TheSuspectedThatAreHeardOfStay) {
  Register(kWorker0, 7);
  clock_.Advance(absl::Milliseconds(100));
  membership_.Suspect(kWorker0);
  clock_.Advance(absl::Milliseconds(100));
  ASSERT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), absl::OkStatus());
  clock_.Advance(2 * Membership::kSuspectSilence);
  EXPECT_THAT(Expire(), IsEmpty());
}

TEST_F(MembershipTest, RegisterMakesAMember) {
  EXPECT_EQ(membership_.Find(kWorker0), nullptr);
  clock_.Advance(absl::Seconds(3));
  ASSERT_EQ(membership_.Register(kWorker0, TestId(7), "host:1"), absl::OkStatus());
  const Member* member = membership_.Find(kWorker0);
  ASSERT_NE(member, nullptr);
  EXPECT_EQ(member->task, kWorker0);
  EXPECT_EQ(member->incarnation, 7u);
  EXPECT_EQ(member->peer, "host:1");
  EXPECT_EQ(member->state, Member::kAlive);
  EXPECT_EQ(member->last_heard, absl::Seconds(3));
  EXPECT_EQ(member->restarts, 0);
}

TEST_F(MembershipTest, AMemberTellsItsDeviceAndSinceWhenItIsInItsState) {
  const absl::Time start = clock_.Now();
  ASSERT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "cpu, 2 threads"),
            absl::OkStatus());
  EXPECT_EQ(membership_.Find(kWorker0)->device, "cpu, 2 threads");
  EXPECT_EQ(membership_.Find(kWorker0)->since, start);
  clock_.Advance(absl::Seconds(1));
  ASSERT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), absl::OkStatus());
  Register(kWorker0, 7);
  EXPECT_EQ(membership_.Find(kWorker0)->since, start);
  Lose(kWorker0, 7);
  EXPECT_EQ(membership_.Find(kWorker0)->since, start + absl::Seconds(1) + kLease);
  clock_.Advance(absl::Seconds(1));
  Register(kWorker0, 8);
  EXPECT_EQ(membership_.Find(kWorker0)->since, clock_.Now());
  clock_.Advance(kTakeover);
  Register(kWorker0, 9);
  EXPECT_EQ(membership_.Find(kWorker0)->since, clock_.Now()) << "another process";
}

TEST_F(MembershipTest, RegisterMayBeRepeatedAndRenews) {
  Register(kWorker0, 7);
  clock_.Advance(kLease - absl::Seconds(1));
  Register(kWorker0, 7);
  clock_.Advance(absl::Seconds(2));
  EXPECT_THAT(Expire(), IsEmpty());
  EXPECT_EQ(membership_.Find(kWorker0)->restarts, 0);
}

TEST_F(MembershipTest, ASecondProcessOfATaskIsRefused) {
  ASSERT_EQ(membership_.Register(kWorker0, TestId(0xabc), "alpha:12"), absl::OkStatus());
  clock_.Advance(kTakeover - absl::Milliseconds(1));
  EXPECT_EQ(
      membership_.Register(kWorker0, TestId(0xdef), "beta:34"),
      absl::AlreadyExistsError("worker-0 at beta:34: the task is held by worker-0 at alpha:12"));
  EXPECT_EQ(membership_.Find(kWorker0)->incarnation, 0xabcu);
  EXPECT_THAT(Expire(), IsEmpty());
}

TEST_F(MembershipTest, ManyMembersSendHeartbeatsLessOften) {
  Register(kWorker0, 7);
  EXPECT_EQ(membership_.HeartbeatInterval(), absl::Milliseconds(1));
  for (int w = 1; w < 800; ++w) Register({Role::kWorker, w}, 100 + static_cast<uint64_t>(w));
  EXPECT_EQ(membership_.HeartbeatInterval(), absl::Milliseconds(800));
  // So their silence means something later.
  clock_.Advance(absl::Milliseconds(4 * 800 - 1));
  EXPECT_EQ(membership_.Register(kWorker0, TestId(8), "").code(), absl::StatusCode::kAlreadyExists);
  clock_.Advance(absl::Milliseconds(1));
  Register(kWorker0, 8);
  for (int w = 800; w < 3000; ++w) Register({Role::kWorker, w}, 100 + static_cast<uint64_t>(w));
  EXPECT_EQ(membership_.HeartbeatInterval(), kLease / 8);
}

TEST_F(MembershipTest, TheRefusedProcessDoesNotRenewTheHoldersLease) {
  Register(kWorker0, 7);
  clock_.Advance(kTakeover / 2);
  EXPECT_FALSE(membership_.Register(kWorker0, TestId(8), "").ok());
  clock_.Advance(kLease - kTakeover / 2);
  EXPECT_EQ(Expire().size(), 1u);
}

TEST_F(MembershipTest, ASilentMemberIsReplacedBeforeItsLeasePasses) {
  Register(kWorker0, 7);
  clock_.Advance(kTakeover);
  Register(kWorker0, 8);
  EXPECT_EQ(membership_.Find(kWorker0)->incarnation, 8u);
  EXPECT_EQ(membership_.Find(kWorker0)->restarts, 1);
  const std::vector<Member> ended = Expire();
  ASSERT_THAT(ended, ElementsAre(Field(&Member::incarnation, 7u)));
  EXPECT_EQ(ended[0].state, Member::kReplaced);
}

TEST_F(MembershipTest, SilenceAloneEndsNothing) {
  Register(kWorker0, 7);
  clock_.Advance(kLease - absl::Milliseconds(1));
  EXPECT_THAT(Expire(), IsEmpty());
  EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), absl::OkStatus());
}

TEST_F(MembershipTest, HeartbeatRenews) {
  Register(kWorker0, 7);
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(kLease - absl::Milliseconds(1));
    EXPECT_THAT(Expire(), IsEmpty());
    EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), absl::OkStatus());
  }
  EXPECT_EQ(membership_.Find(kWorker0)->last_heard, clock_.Monotonic());
}

TEST_F(MembershipTest, ExpiryIsNotNoticedByHeartbeat) {
  Register(kWorker0, 7);
  clock_.Advance(2 * kLease);
  EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), absl::OkStatus());
  EXPECT_THAT(Expire(), IsEmpty());
}

TEST_F(MembershipTest, ExpireReturnsEachLostMemberOnce) {
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  clock_.Advance(absl::Seconds(5));
  Register(kPs0, 3);
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(Expire(),
              ElementsAre(Field(&Member::incarnation, 1u), Field(&Member::incarnation, 2u)));
  EXPECT_THAT(Expire(), IsEmpty());
  EXPECT_EQ(State(kWorker0), Member::kLost);
  EXPECT_EQ(State(kPs0), Member::kAlive);
}

TEST_F(MembershipTest, ALostIncarnationStaysLost) {
  Register(kWorker0, 7);
  Lose(kWorker0, 7);
  const absl::Status over =
      absl::AbortedError("membership of worker-0 at host:1 is over: its lease was lost");
  EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), over);
  EXPECT_EQ(membership_.Leave(kWorker0, TestId(7)), over);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1"), over);
  EXPECT_EQ(State(kWorker0), Member::kLost);
}

TEST_F(MembershipTest, ANewIncarnationTakesALostTask) {
  Register(kWorker0, 7);
  Lose(kWorker0, 7);
  Register(kWorker0, 8);
  EXPECT_EQ(membership_.Find(kWorker0)->incarnation, 8u);
  EXPECT_EQ(membership_.Find(kWorker0)->restarts, 1);
  EXPECT_THAT(Expire(), IsEmpty());
}

TEST_F(MembershipTest, AReplacedIncarnationIsToldWhoHoldsItsTask) {
  Register(kWorker0, 7);
  const uint64_t told = membership_.epoch();
  Lose(kWorker0, 7);
  ASSERT_EQ(membership_.Register(kWorker0, TestId(8), "host:2"), absl::OkStatus());
  const absl::Status unknown = absl::AbortedError(
      "worker-0 is not known with this membership; it is held by worker-0 at host:2");
  EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), unknown);
  EXPECT_EQ(membership_.Leave(kWorker0, TestId(7)), unknown);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", told),
            absl::AlreadyExistsError("worker-0 at host:1: the task is held by worker-0 at host:2"));
  // Once that one is silent the task may be had, but not by an incarnation that is over.
  const absl::Status over = absl::AbortedError(
      "membership of worker-0 at host:1 is over: it was followed by worker-0 at host:2");
  clock_.Advance(kTakeover);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", told), over);
  Lose(kWorker0, 8);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", told), over);
  EXPECT_EQ(membership_.Find(kWorker0)->incarnation, 8u);
}

TEST_F(MembershipTest, EachJoinAndEachEndBeginsAnEpoch) {
  uint64_t epoch = membership_.epoch();
  EXPECT_GT(epoch, 0u) << "0 is none";
  const auto begun = [&] {
    return membership_.epoch() - std::exchange(epoch, membership_.epoch());
  };
  Register(kWorker0, 7);
  EXPECT_EQ(begun(), 1u);
  Register(kWorker0, 7);
  ASSERT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), absl::OkStatus());
  EXPECT_FALSE(membership_.Register(kWorker0, TestId(8), "host:2").ok());
  EXPECT_EQ(begun(), 0u);
  clock_.Advance(kTakeover);
  Register(kWorker0, 8);
  EXPECT_EQ(begun(), 2u) << "one goes, one comes";
  ASSERT_EQ(membership_.Leave(kWorker0, TestId(8)), absl::OkStatus());
  ASSERT_EQ(membership_.Leave(kWorker0, TestId(8)), absl::OkStatus());
  EXPECT_EQ(begun(), 1u);
  membership_.RaiseEpoch(epoch);
  EXPECT_GT(begun(), 1000u);
}

TEST_F(MembershipTest, RegisterNoticesAnExpiredHolder) {
  Register(kWorker0, 7);
  clock_.Advance(kLease);
  Register(kWorker0, 8);
  EXPECT_EQ(membership_.Find(kWorker0)->incarnation, 8u);
  // The owner still learns of the loss.
  const std::vector<Member> lost = Expire();
  ASSERT_THAT(lost, ElementsAre(Field(&Member::incarnation, 7u)));
  EXPECT_EQ(lost[0].state, Member::kLost);
  EXPECT_EQ(lost[0].task, kWorker0);
  EXPECT_EQ(State(kWorker0), Member::kAlive);
}

TEST_F(MembershipTest, LeaveEndsTheMembership) {
  Register(kWorker0, 7);
  EXPECT_EQ(membership_.Leave(kWorker0, TestId(7)), absl::OkStatus());
  EXPECT_EQ(membership_.Leave(kWorker0, TestId(7)), absl::OkStatus());
  EXPECT_EQ(State(kWorker0), Member::kLeft);
  const absl::Status left =
      absl::AbortedError("membership of worker-0 at host:1 is over: it has left");
  EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(7)), left);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1"), left);
  clock_.Advance(2 * kLease);
  // Its end is reported once, as having left.
  const std::vector<Member> ended = Expire();
  ASSERT_THAT(ended, ElementsAre(Field(&Member::incarnation, 7u)));
  EXPECT_EQ(ended[0].state, Member::kLeft);
  EXPECT_THAT(Expire(), IsEmpty());
}

TEST_F(MembershipTest, ANewIncarnationTakesALeftTaskAtOnce) {
  Register(kWorker0, 7);
  ASSERT_EQ(membership_.Leave(kWorker0, TestId(7)), absl::OkStatus());
  Register(kWorker0, 8);
  EXPECT_EQ(State(kWorker0), Member::kAlive);
  EXPECT_EQ(membership_.Find(kWorker0)->restarts, 1);
}

TEST_F(MembershipTest, StrangersAreRefused) {
  const absl::Status unknown = absl::AbortedError("worker-0 is not known with this membership");
  EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(9)), unknown);
  EXPECT_EQ(membership_.Leave(kWorker0, TestId(9)), unknown);
  Register(kWorker0, 7);
  const absl::Status held = absl::AbortedError(
      "worker-0 is not known with this membership; it is held by worker-0 at host:1");
  EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(9)), held);
  EXPECT_EQ(membership_.Leave(kWorker0, TestId(9)), held);
  EXPECT_EQ(State(kWorker0), Member::kAlive);
}

TEST_F(MembershipTest, MembersAreSortedByTask) {
  Register(kWorker1, 1);
  Register(kPs0, 2);
  Register(kWorker0, 3);
  EXPECT_THAT(membership_.Members(),
              ElementsAre(Field(&Member::task, kPs0), Field(&Member::task, kWorker0),
                          Field(&Member::task, kWorker1)));
}

TEST_F(MembershipTest, AnyAliveLooksAtTheRole) {
  EXPECT_FALSE(membership_.AnyAlive(Role::kWorker));
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  EXPECT_TRUE(membership_.AnyAlive(Role::kWorker));
  EXPECT_FALSE(membership_.AnyAlive(Role::kPs));
  ASSERT_EQ(membership_.Leave(kWorker0, TestId(1)), absl::OkStatus());
  EXPECT_THAT(Expire(), SizeIs(1));
  EXPECT_TRUE(membership_.AnyAlive(Role::kWorker));
  Lose(kWorker1, 2);
  EXPECT_FALSE(membership_.AnyAlive(Role::kWorker));
}

// ---- Whoever knows an incarnation, but not its secret.

TEST_F(MembershipTest, AnIncarnationWithoutItsSecretIsNoMember) {
  Register(kWorker0, 7);
  clock_.Advance(kLease - absl::Milliseconds(1));
  const MembershipId right = TestId(7);
  const absl::Status stranger = absl::AbortedError(
      "worker-0 is not known with this membership; it is held by worker-0 at host:1");
  for (const uint64_t secret :
       {uint64_t{0}, right.secret + 1, right.secret ^ (uint64_t{1} << 63)}) {
    const MembershipId wrong = {right.incarnation, secret};
    EXPECT_EQ(membership_.Heartbeat(kWorker0, wrong), stranger);
    EXPECT_EQ(membership_.Leave(kWorker0, wrong), stranger);
    const absl::Status joining =
        absl::AbortedError("worker-0 at host:2 shows the membership of worker-0 at host:1");
    EXPECT_EQ(membership_.Register(kWorker0, wrong, "host:2"), joining);
    EXPECT_EQ(membership_.Register(kWorker0, wrong, "host:2", "", membership_.epoch()), joining);
  }
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Expire().size(), 1u) << "nothing of it renewed the lease";
  EXPECT_EQ(membership_.Find(kWorker0)->peer, "host:1");
}

TEST_F(MembershipTest, AMemberThatHasLeftIsNotAnsweredWithoutItsSecret) {
  Register(kWorker0, 7);
  ASSERT_EQ(membership_.Leave(kWorker0, TestId(7)), absl::OkStatus());
  EXPECT_EQ(membership_.Leave(kWorker0, {7, 0}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(membership_.Register(kWorker0, {7, 8}, "host:2").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(State(kWorker0), Member::kLeft);
}

TEST_F(MembershipTest, AnIncarnationIsOfOneTask) {
  Register(kWorker0, 7);
  EXPECT_EQ(membership_.Register(kWorker1, TestId(7), "host:2"),
            absl::AbortedError("worker-1 at host:2 shows the membership of worker-0 at host:1"));
  EXPECT_EQ(membership_.Register(kWorker1, {7, 1}, "host:2").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(membership_.Find(kWorker1), nullptr);
}

// ---- Members of a chief's predecessor.

class AwayMemberTest : public MembershipTest {
 protected:
  void Expect(Task task, uint64_t incarnation) {
    membership_.Expect({task,
                        incarnation,
                        "old:1",
                        Member::kAlive,
                        absl::Hours(5),
                        3,
                        {},
                        {},
                        TestId(incarnation).secret});
  }
};

TEST_F(AwayMemberTest, RegistersAgainWithTheSameIncarnation) {
  clock_.Advance(absl::Seconds(100));
  Expect(kWorker0, 7);
  EXPECT_EQ(State(kWorker0), Member::kAway);
  EXPECT_EQ(membership_.Find(kWorker0)->since, clock_.Now());
  EXPECT_TRUE(membership_.AnyAway(Role::kWorker));
  EXPECT_FALSE(membership_.AnyAway(Role::kEvaluator));
  EXPECT_FALSE(membership_.AnyAlive(Role::kWorker));
  EXPECT_EQ(membership_.Heartbeat(kWorker0, TestId(7)),
            absl::AbortedError("worker-0 at old:1 has not registered "
                               "since the chief's restart"));
  EXPECT_EQ(membership_.Leave(kWorker0, TestId(7)).code(), absl::StatusCode::kAborted);
  Register(kWorker0, 7);
  EXPECT_EQ(State(kWorker0), Member::kAlive);
  EXPECT_EQ(membership_.Find(kWorker0)->restarts, 3);
  EXPECT_FALSE(membership_.AnyAway(Role::kWorker));
  EXPECT_THAT(Expire(), IsEmpty());
}

TEST_F(AwayMemberTest, IsLostWhenItsLeasePasses) {
  clock_.Advance(absl::Seconds(100));
  Expect(kWorker0, 7);
  clock_.Advance(kLease - absl::Milliseconds(1));
  EXPECT_THAT(Expire(), IsEmpty());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(Expire(), ElementsAre(Field(&Member::incarnation, 7u)));
  EXPECT_EQ(State(kWorker0), Member::kLost);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "old:1").code(), absl::StatusCode::kAborted);
}

TEST_F(AwayMemberTest, ANewProcessMustGiveItTheChanceToComeBack) {
  Expect(kWorker0, 7);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(8), "host:2").code(),
            absl::StatusCode::kAlreadyExists);
  clock_.Advance(kTakeover);
  Register(kWorker0, 8);
  EXPECT_THAT(Expire(), ElementsAre(Field(&Member::incarnation, 7u)));
  EXPECT_EQ(membership_.Find(kWorker0)->restarts, 4);
}

TEST_F(AwayMemberTest, WhoRegisteredBeforeItWasExpectedIsAlive) {
  Register(kWorker0, 7);
  Expect(kWorker0, 7);
  EXPECT_EQ(State(kWorker0), Member::kAlive);
  // Its task was taken before it was known of.
  Register(kWorker1, 9);
  Expect(kWorker1, 8);
  EXPECT_EQ(membership_.Find(kWorker1)->incarnation, 9u);
  const std::vector<Member> ended = Expire();
  ASSERT_THAT(ended, ElementsAre(Field(&Member::incarnation, 8u)));
  EXPECT_EQ(ended[0].state, Member::kReplaced);
}

TEST_F(AwayMemberTest, ComesBackWithItsSecretOnly) {
  Expect(kWorker0, 7);
  EXPECT_EQ(membership_.Register(kWorker0, {7, 0}, "host:2").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(membership_.Register(kWorker0, {7, 8}, "host:2").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(State(kWorker0), Member::kAway);
  Register(kWorker0, 7);
  EXPECT_EQ(State(kWorker0), Member::kAlive);
}

// An older build has persisted no secret, and the member shows the one that it has.
TEST_F(AwayMemberTest, WhoseSecretIsUnknownJoinsAsANewMember) {
  membership_.Expect({kWorker0, 7, "old:1", Member::kAlive, {}});
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "old:1").code(), absl::StatusCode::kAborted);
  clock_.Advance(kTakeover);
  Register(kWorker0, 8);
  EXPECT_THAT(Expire(), ElementsAre(Field(&Member::incarnation, 7u)));
}

class ImpostorTest : public AwayMemberTest, public testing::WithParamInterface<Task> {};

TEST_P(ImpostorTest, EndsWithTheMemberWhoseIncarnationItHasShown) {
  const Task impostor = GetParam();
  ASSERT_EQ(membership_.Register(impostor, {7, 1}, "host:2"), absl::OkStatus());
  Expect(kWorker0, 7);
  EXPECT_EQ(State(impostor), Member::kLost);
  EXPECT_EQ(membership_.FindPresent(7), nullptr);
  EXPECT_THAT(Expire(), ElementsAre(Field(&Member::incarnation, 7u)));
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "old:1").code(), absl::StatusCode::kAborted);
  Register(kWorker0, 8);
}

INSTANTIATE_TEST_SUITE_P(Tasks, ImpostorTest, testing::Values(kWorker0, kWorker1));

TEST_F(AwayMemberTest, AnEpochTellsWhoseMembershipAPredecessorSawEnd) {
  constexpr uint64_t kPersisted = 50;
  membership_.RaiseEpoch(kPersisted);
  membership_.Inherit(kPersisted);
  Expect(kWorker1, 9);
  const absl::Status over =
      absl::AbortedError("membership of worker-0 at host:1 is over: as an earlier chief knew");
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", kPersisted), over);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", kPersisted - 20), over);
  // Nor did this chief know it when it told that epoch.
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", membership_.epoch()), over);
  // Its predecessor let it in after the state was persisted.
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", kPersisted + 1),
            absl::OkStatus());
  EXPECT_EQ(membership_.Register(kWorker1, TestId(9), "host:1", "", kPersisted - 20),
            absl::OkStatus());
}

TEST_F(MembershipTest, WithoutAPredecessorNobodyReturns) {
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", 999'999'999).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(membership_.Register(kWorker0, TestId(7), "host:1", "", 1).code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(membership_.Members().empty());
}

TEST_F(MembershipTest, LoseEndsAMembershipAtOnce) {
  Register(kWorker0, 7);
  membership_.Lose(8);
  EXPECT_THAT(Expire(), IsEmpty());
  membership_.Lose(7);
  membership_.Lose(7);
  EXPECT_THAT(Expire(), ElementsAre(Field(&Member::incarnation, 7u)));
  EXPECT_EQ(State(kWorker0), Member::kLost);
}

TEST_F(MembershipTest, CountsTheLivingOfARole) {
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  Register(kPs0, 3);
  EXPECT_EQ(membership_.NumAlive(Role::kWorker), 2);
  ASSERT_EQ(membership_.Leave(kWorker0, TestId(1)), absl::OkStatus());
  EXPECT_EQ(membership_.NumAlive(Role::kWorker), 1);
}

TEST(MemberStateNameTest, Names) {
  EXPECT_EQ(MemberStateName(Member::kAway), "away");
  EXPECT_EQ(MemberStateName(Member::kReplaced), "replaced");
  EXPECT_EQ(MemberStateName(Member::kAlive), "alive");
  EXPECT_EQ(MemberStateName(Member::kLost), "lost");
  EXPECT_EQ(MemberStateName(Member::kLeft), "left");
}

TEST_F(MembershipTest, AJobHasSoManyTasks) {
  for (size_t i = 0; i < Membership::kMaxMembers; ++i) {
    Register({Role::kWorker, static_cast<int>(i)}, i + 1);
  }
  const Task another = {Role::kWorker, static_cast<int>(Membership::kMaxMembers)};
  EXPECT_EQ(membership_.Register(another, TestId(9999), "host:1"),
            absl::FailedPreconditionError("worker-4096 at host:1: expected at most 4096 tasks in a "
                                          "job, found another one"));
  EXPECT_EQ(membership_.Find(another), nullptr);
  Register(kWorker0, 1);
}

TEST_F(MembershipTest, TimeInWhichNobodyCouldRenewDoesNotCount) {
  Register(kWorker0, 1);
  clock_.Advance(kLease / 2);
  clock_.Advance(absl::Hours(1));
  membership_.ExtendLeases(absl::Hours(1));
  membership_.ExpireLeases();
  EXPECT_TRUE(membership_.AnyAlive(Role::kWorker));
  membership_.ExtendLeases(absl::Hours(1));
  clock_.Advance(kLease - absl::Milliseconds(1));
  membership_.ExpireLeases();
  EXPECT_TRUE(membership_.AnyAlive(Role::kWorker)) << "no lease lasts longer than a new one";
  clock_.Advance(absl::Milliseconds(1));
  membership_.ExpireLeases();
  EXPECT_FALSE(membership_.AnyAlive(Role::kWorker));
}

}  // namespace
}  // namespace keelson
