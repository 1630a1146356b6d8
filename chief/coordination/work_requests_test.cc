#include "chief/coordination/work_requests.h"

#include "chief/coordination/work_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr int64_t kManySteps = 1'000'000;

WorkLease LeaseOf(uint64_t id, size_t tickets) {
  WorkLease lease;
  lease.id = id;
  lease.tickets.resize(tickets);
  return lease;
}

class WorkRequestsTest : public testing::Test {
 protected:
  absl::Duration now_ = absl::Seconds(100);
  WorkRequests requests_{{absl::Seconds(1), /*max_tickets_per_lease=*/64}};
};

TEST_F(WorkRequestsTest, ARequestThatComesAgainIsKnown) {
  EXPECT_FALSE(requests_.Came(kAlice, 5));
  EXPECT_TRUE(requests_.Note(kAlice, 5));
  EXPECT_TRUE(requests_.Came(kAlice, 5));
  EXPECT_TRUE(requests_.Came(kAlice, 4));
  EXPECT_FALSE(requests_.Came(kAlice, 6));
  EXPECT_FALSE(requests_.Came(kBob, 5));
  EXPECT_FALSE(requests_.Note(kAlice, 5));
  EXPECT_TRUE(requests_.Overtaken(kAlice, 4));
  EXPECT_FALSE(requests_.Overtaken(kAlice, 5));
}

TEST_F(WorkRequestsTest, ARequestWithoutANumberIsNeverARepetition) {
  EXPECT_FALSE(requests_.Note(kAlice, 0));
  EXPECT_FALSE(requests_.Came(kAlice, 0));
  requests_.Grant(kAlice, 0, LeaseOf(1, 1), now_);
  EXPECT_FALSE(requests_.Granted(kAlice, 0).has_value());
}

TEST_F(WorkRequestsTest, OnlyTheRequestThatWasAnsweredGetsItsLeaseAgain) {
  requests_.Note(kAlice, 1);
  requests_.Grant(kAlice, 1, LeaseOf(10, 1), now_);
  EXPECT_EQ(requests_.Granted(kAlice, 1)->id, 10u);
  EXPECT_FALSE(requests_.Granted(kAlice, 2).has_value());
  EXPECT_FALSE(requests_.Granted(kBob, 1).has_value());
  requests_.Forget(kAlice);
  EXPECT_FALSE(requests_.Granted(kAlice, 1).has_value());
  EXPECT_FALSE(requests_.Came(kAlice, 1));
}

TEST_F(WorkRequestsTest, CallsThatWaitAreCountedWhileTheMembershipLasts) {
  EXPECT_FALSE(requests_.AnyWaits(kAlice));
  requests_.BeginWait(kAlice);
  requests_.BeginWait(kAlice);
  requests_.EndWait(kAlice);
  EXPECT_TRUE(requests_.AnyWaits(kAlice));
  requests_.Forget(kAlice);
  EXPECT_FALSE(requests_.AnyWaits(kAlice));
  requests_.EndWait(kAlice);
  EXPECT_FALSE(requests_.AnyWaits(kAlice));
}

TEST_F(WorkRequestsTest, ALeaseFollowsTheSpeedAndGrowsTwofoldAtMost) {
  EXPECT_EQ(requests_.TicketsFor(kAlice, kManySteps, now_), 1);
  requests_.Grant(kAlice, 1, LeaseOf(1, 4), now_);
  EXPECT_EQ(requests_.TicketsFor(kAlice, kManySteps, now_), 8);
  EXPECT_EQ(requests_.TicketsFor(kAlice, kManySteps, now_ + absl::Seconds(1)), 4);
  EXPECT_EQ(requests_.TicketsFor(kAlice, kManySteps, now_ + absl::Seconds(100)), 1);
  requests_.Grant(kAlice, 2, LeaseOf(2, 50), now_);
  EXPECT_EQ(requests_.TicketsFor(kAlice, kManySteps, now_), 64);
}

TEST_F(WorkRequestsTest, LeasesGetSmallerTowardsTheEnd) {
  requests_.Grant(kAlice, 1, LeaseOf(1, 32), now_);
  requests_.Grant(kBob, 1, LeaseOf(2, 32), now_);
  EXPECT_EQ(requests_.TicketsFor(kAlice, 40, now_), 10);
  EXPECT_EQ(requests_.TicketsFor(kAlice, 3, now_), 1);
}

}  // namespace
}  // namespace keelson
