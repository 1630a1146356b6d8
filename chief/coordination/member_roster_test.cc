#include "chief/coordination/member_roster.h"

#include <optional>
#include <thread>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MemberRosterTest : public CoordinatorTest {};

class MemberListTest : public SuccessionTest {};

TEST_F(MemberRosterTest, WorkOfALostWorkerGoesToOthers) {
  StartTraining(2);
  Register(kWorker0, 1);
  const auto lost = Acquire(kWorker0, 1);
  ASSERT_TRUE(lost.has_value());
  LoseEveryone();
  EXPECT_EQ(StateOf(kWorker0), Member::kLost);
  Register(kWorker1, 2);
  const auto taken = Acquire(kWorker1, 2);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->tickets, lost->tickets);
  // The lost one's late report does not count.
  EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), Completed(lost->id, 1)).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 0);
}

TEST_F(MemberRosterTest, WorkIsHandedOnOnlyAfterItsHolderWasFenced) {
  StartTraining(1);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  clock_.Advance(kLease);
  coordinator_.roster()->ExpireLeases();
  Register(kWorker1, 2);
  EXPECT_FALSE(Acquire(kWorker1, 2).has_value());
  EXPECT_THAT(coordinator_.roster()->TakeEnded(), ElementsAre(1u));
  EXPECT_THAT(coordinator_.roster()->TakeEnded(), IsEmpty());
  EXPECT_FALSE(Acquire(kWorker1, 2).has_value());
  coordinator_.roster()->HandOn({1});
  EXPECT_TRUE(Acquire(kWorker1, 2).has_value());
  ASSERT_EQ(coordinator_.roster()->MemberList().members_size(), 1);
  EXPECT_EQ(coordinator_.roster()->MemberList().members(0).incarnation(), 2u);
}

TEST_F(MemberRosterTest, IsAloneWhenAllHaveLeftOrAreLost) {
  EXPECT_TRUE(coordinator_.roster()->WaitUntilAlone(kNoWait));
  Register(kWorker0, 1);
  EXPECT_FALSE(coordinator_.roster()->WaitUntilAlone(kNoWait));
  EXPECT_TRUE(coordinator_.roster()->AnyAlive(Role::kWorker));
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kEvaluator));
  std::thread leaves(
      [&] { EXPECT_EQ(coordinator_.members()->Leave(kWorker0, TestId(1), {}), absl::OkStatus()); });
  EXPECT_TRUE(coordinator_.roster()->WaitUntilAlone(kLong));
  leaves.join();
  Register(kWorker1, 2);
  LoseEveryone();
  EXPECT_TRUE(coordinator_.roster()->WaitUntilAlone(kNoWait));
}

TEST_F(MemberRosterTest, AWorkerThatBeatsButDoesNotStepLosesItsWork) {
  StartTraining(100);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  const std::optional<WorkLease> held = Acquire(kWorker0, 1);
  ASSERT_TRUE(held.has_value());
  const auto beat = [&](absl::Duration time) {
    for (absl::Duration rest = time; rest > absl::ZeroDuration(); rest -= absl::Seconds(1)) {
      clock_.Advance(absl::Seconds(1));
      coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}).IgnoreError();
      EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker1, TestId(2), {}), absl::OkStatus());
      coordinator_.roster()->ExpireLeases();
    }
  };
  beat(StallWatch::kFirstStep);
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive) << "compilers take minutes";
  testing::internal::CaptureStderr();
  beat(absl::Seconds(2));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("worker-0 (host:1) sends heartbeats, but has completed no step for"));
  EXPECT_EQ(StateOf(kWorker0), Member::kLost);
  EXPECT_EQ(StateOf(kWorker1), Member::kAlive) << "it holds nothing";
  coordinator_.roster()->HandOn(coordinator_.roster()->TakeEnded());
  EXPECT_EQ(Acquire(kWorker1, 2)->tickets[0].step, held->tickets[0].step);
}

TEST_F(MemberRosterTest, AWorkerThatAskedForMoreTimeKeepsItsWork) {
  StartTraining(100);
  ASSERT_EQ(coordinator_.members()
                ->Register(kWorker0, TestId(1), kHash, "host:1", {}, "", 0,
                           StallWatch::kFirstStep + absl::Seconds(3))
                .status(),
            absl::OkStatus());
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  const auto beat = [&](absl::Duration time) {
    for (absl::Duration rest = time; rest > absl::ZeroDuration(); rest -= absl::Seconds(1)) {
      coordinator_.roster()->ExpireLeases();
      clock_.Advance(absl::Seconds(1));
      coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}).IgnoreError();
    }
    coordinator_.roster()->ExpireLeases();
  };
  beat(StallWatch::kFirstStep + absl::Seconds(3));
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive);
  beat(absl::Seconds(1));
  EXPECT_EQ(StateOf(kWorker0), Member::kLost);
}

TEST_F(MemberRosterTest, AChiefThatWasFrozenLosesNobody) {
  StartTraining(100);
  Register(kWorker0, 1);
  clock_.Advance(kLease * 100);
  coordinator_.roster()->ExtendLeases(kLease * 100);
  coordinator_.roster()->ExpireLeases();
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive);
  LoseEveryone();
  EXPECT_EQ(StateOf(kWorker0), Member::kLost);
}

TEST_F(MemberRosterTest, NobodyIsGivenUpWhileAServerIsAway) {
  StartTraining(100);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  for (int minute = 0; minute < 60; ++minute) {
    clock_.Advance(absl::Minutes(1));
    EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}), absl::OkStatus());
    coordinator_.roster()->ExcuseSteps();
    coordinator_.roster()->ExpireLeases();
  }
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive);
}

TEST_F(MemberListTest, TheMembersAreThoseWhoLiveAndThoseWhoMayComeBack) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  ASSERT_EQ(chief_->members()->Leave(kWorker1, TestId(2), {}), absl::OkStatus());
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  NewChief();
  chief_->start()->RaiseMemberEpoch(persisted.member_epoch() + 7);  // a server knows it
  ASSERT_TRUE(Register(kEvaluator, 3).ok());
  Resume(persisted);
  const v1::MemberList list = chief_->roster()->MemberList();
  EXPECT_GT(list.epoch(), persisted.member_epoch() + 1000);
  ASSERT_EQ(list.members_size(), 2);
  EXPECT_EQ(list.members(0).incarnation(), 1u);
  EXPECT_EQ(list.members(0).membership_secret(), TestId(1).secret);
  EXPECT_EQ(list.members(0).task().role(), v1::ROLE_WORKER);
  EXPECT_EQ(list.members(1).incarnation(), 3u);
  EXPECT_EQ(list.members(1).membership_secret(), TestId(3).secret);
  EXPECT_EQ(list.members(1).task().role(), v1::ROLE_EVALUATOR);
}

}  // namespace
}  // namespace keelson
