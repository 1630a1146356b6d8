#include "chief/coordination/member_calls.h"

#include <string>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MemberCallsTest : public CoordinatorTest {};

TEST_F(MemberCallsTest, RefusesAnotherConfiguration) {
  const absl::Status status =
      coordinator_.members()->Register(kWorker0, TestId(1), 0xdef, "host:1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker-0"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000abc"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000def"));
}

TEST_F(MemberCallsTest, RefusesASecondLifeOfATaskThatIsAlive) {
  Register(kWorker0, 1);
  EXPECT_EQ(coordinator_.members()->Register(kWorker0, TestId(2), kHash, "host:2").status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(MemberCallsTest, CallsOfStrangersAreAborted) {
  StartTraining(10);
  EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.members()->Leave(kWorker0, TestId(1), {}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.requests()->AcquireWork(kWorker0, TestId(1), {}, kNoWait).status().code(),
            absl::StatusCode::kAborted);
}

TEST_F(MemberCallsTest, ALostWorkerJoinsAnewAsAnother) {
  StartTraining(5);
  Register(kWorker0, 1);
  const auto old = Acquire(kWorker0, 1);
  LoseEveryone();
  EXPECT_EQ(coordinator_.members()->Register(kWorker0, TestId(1), kHash, "host:1").status().code(),
            absl::StatusCode::kAborted);
  Register(kWorker0, 2);
  EXPECT_EQ(StateOf(kWorker0), Member::kAlive);
  const auto fresh = Acquire(kWorker0, 2, Completed(old->id, 1, 1));
  ASSERT_TRUE(fresh.has_value());
  EXPECT_NE(fresh->id, old->id);
  EXPECT_EQ(fresh->tickets, old->tickets);
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 0) << "the old lease was another's";
}

TEST_F(MemberCallsTest, AReplacementTakesOverTheTaskAndFreesItsWork) {
  StartTraining(1);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  clock_.Advance(absl::Seconds(1));
  Register(kWorker0, 2);
  EXPECT_THAT(coordinator_.roster()->TakeEnded(), ElementsAre(1u));
  coordinator_.roster()->HandOn({1});
  EXPECT_TRUE(Acquire(kWorker0, 2).has_value());
  EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}).code(),
            absl::StatusCode::kAborted);
}

TEST_F(MemberCallsTest, LeavingGivesWorkBackAndKeepsWhatIsDone) {
  StartTraining(100);
  Register(kWorker0, 1);
  auto lease = Acquire(kWorker0, 1);
  lease = Acquire(kWorker0, 1, Completed(lease->id, 1));
  ASSERT_EQ(lease->tickets.size(), 2u);
  ASSERT_EQ(coordinator_.members()->Leave(kWorker0, TestId(1), Completed(lease->id, 1, 2)),
            absl::OkStatus());
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 2);
  EXPECT_EQ(StateOf(kWorker0), Member::kLeft);
  coordinator_.roster()->HandOn(coordinator_.roster()->TakeEnded());
  Register(kWorker1, 2);
  EXPECT_EQ(Acquire(kWorker1, 2)->tickets[0], lease->tickets[1]);
}

TEST_F(MemberCallsTest, AReportOfMoreThanTheLeaseHasIsRefused) {
  StartTraining(10);
  Register(kWorker0, 1);
  const auto lease = Acquire(kWorker0, 1);
  EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), Completed(lease->id, 2)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MemberCallsTest, OnlyAMembersGradientIsAdmitted) {
  EXPECT_EQ(coordinator_.members()->Admit(kWorker0, TestId(1), 1, 0, 1).status().code(),
            absl::StatusCode::kAborted);
  Register(kWorker0, 1);
  EXPECT_EQ(coordinator_.members()->Admit(kWorker0, TestId(1), 1, 0, 1).value(), false)
      << "nothing is leased before training";
}

}  // namespace
}  // namespace keelson
