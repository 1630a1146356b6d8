// What a worker does when the chief or a server does not know it any more.
#include "gmock/gmock.h"
#include "worker/worker_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

absl::Status RefusedByServer() { return absl::AbortedError("membership of worker-1 is over"); }

class WorkerMembershipTest : public WorkerTest {
 protected:
  // In the first push; the others are fine.
  void OnFirstPush(std::function<absl::Status()> action) {
    on_push_ = [this, action] { return pushed_++ == 0 ? action() : absl::OkStatus(); };
  }
  std::vector<uint64_t> RegisteredIncarnations() const {
    std::vector<uint64_t> incarnations;
    for (const v1::RegisterRequest& request : chief_.registered()) {
      incarnations.push_back(request.header().incarnation());
      EXPECT_EQ(request.header().membership_secret(), kSecret);
    }
    return incarnations;
  }

  int pushed_ = 0;
};

TEST_F(WorkerMembershipTest, ARestartedChiefThatKeepsTheLeasesIsNotNoticed) {
  chief_.AddLease(50, 0, 5);
  OnFirstPush([this] {
    chief_.Forget();
    chief_.AwaitRegistrations(2);
    chief_.AwaitHeartbeats(2);
    return absl::OkStatus();
  });
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 5)));
  EXPECT_THAT(RegisteredIncarnations(), ElementsAre(9, 9));
  EXPECT_EQ(chief_.registered()[0].header().member_epoch(), 0u);
  EXPECT_EQ(chief_.registered()[1].header().member_epoch(), 30u) << "it was a member";
  EXPECT_EQ(exchanges_.member_epoch, 30u);
  EXPECT_THAT(exchanges_.incarnations, ElementsAre(9));
  EXPECT_EQ(exchanges_.pulls, 1);
}

TEST_F(WorkerMembershipTest, TheClientFollowsShardsThatMove) {
  chief_.AddLease(50, 0, 5);
  options_.servers_at = [](const std::vector<std::string>& addresses) {
    return std::vector<BulkServer>{{"named", addresses.at(0)}};
  };
  Mutex mu;
  CondVar moved;
  std::vector<std::vector<BulkServer>> moves;
  on_servers_ = [&](const std::vector<BulkServer>& servers) {
    MutexLock lock(&mu);
    moves.push_back(servers);
    moved.NotifyAll();
  };
  OnFirstPush([&] {
    chief_.MoveServers(2, {"other:1"});
    MutexLock lock(&mu);
    while (moves.empty()) moved.Wait(&mu);
    return absl::OkStatus();
  });
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(moves, (std::vector<std::vector<BulkServer>>{{{"named", "other:1"}}}));
}

TEST_F(WorkerMembershipTest, TicketsThatARestartedChiefGaveToOthersAreNotTrained) {
  chief_.AddLease(50, 0, 100);
  OnFirstPush([this] {
    chief_.WriteOff(100);
    chief_.AddLease(60, 0, 2);
    chief_.Forget({50});
    chief_.AwaitRegistrations(2);
    chief_.AwaitHeartbeats(2);
    return absl::OkStatus();
  });
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 0, 1));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(60, 2)));
  EXPECT_THAT(RegisteredIncarnations(), ElementsAre(9, 9));
}

// As after a freeze: the lease was lost, and the worker first learns it from a server's refusal.
TEST_F(WorkerMembershipTest, AMembershipThatIsOverIsFollowedByANewOne) {
  chief_.AddLease(50, 0, 100);
  OnFirstPush([this] {
    chief_.Lose();
    chief_.AddLease(60, 0, 2);
    return RefusedByServer();
  });
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 0, 1));
  EXPECT_THAT(exchanges_.incarnations, ElementsAre(9, 10));
  EXPECT_EQ(RegisteredIncarnations().back(), 10u);
  EXPECT_THAT(chief_.registered().back().leases(), IsEmpty()) << "what was under way is dropped";
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(60, 2)));
  EXPECT_EQ(exchanges_.pulls, 2) << "the values too are fetched anew";
  EXPECT_EQ(chief_.left(), 1) << "a membership that is over is not left";
}

TEST_F(WorkerMembershipTest, TheEndOfAMembershipEndsACallUnderWay) {
  chief_.AddLease(50, 0, 100);
  OnFirstPush([this] {
    chief_.Lose();
    chief_.AddLease(60, 0, 2);
    client_stop_->Wait();
    return absl::CancelledError("pushing to ps-0: asked to stop");
  });
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.incarnations, ElementsAre(9, 10));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(60, 2)));
  EXPECT_FALSE(stop_.raised());
}

TEST_F(WorkerMembershipTest, ServersThatRefuseAMemberGetANewOne) {
  chief_.AddLease(50, 0, 100);
  OnFirstPush([this] {
    chief_.WriteOff(100);
    chief_.AddLease(60, 0, 2);
    return RefusedByServer();
  });
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(RegisteredIncarnations(), ElementsAre(9, 9, 10)) << "the chief is asked first";
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(60, 2)));
  EXPECT_EQ(chief_.left(), 2);
}

TEST_F(WorkerMembershipTest, AReplacedWorkerEndsAndSaysWhoHasItsTask) {
  const HurryingClock clock;
  clock_ = &clock;
  chief_.AddLease(50, 0, 100);
  OnFirstPush([this] {
    chief_.Replace("host:7");
    return RefusedByServer();
  });
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("host:7"));
  EXPECT_THAT(exchanges_.incarnations, ElementsAre(9));
  EXPECT_EQ(chief_.left(), 0);
}

TEST_F(WorkerMembershipTest, MembershipsThatNeverLastForAStepEndTheWorker) {
  const HurryingClock clock;
  clock_ = &clock;
  options_.retry.give_up_after = absl::Minutes(1);
  chief_.AddLease(50, 0, 100);
  on_push_ = [this] {
    chief_.AddLease(50 + exchanges_.incarnations.size(), 0, 100);
    return RefusedByServer();
  };
  EXPECT_EQ(Run(), RefusedByServer());
  EXPECT_GT(exchanges_.incarnations.size(), 1u);
}

TEST_F(WorkerMembershipTest, SumsOutliveAMembership) {
  chief_.AddLease(50, 0, 100);
  on_push_ = [this] {
    if (pushed_++ != 1) return absl::OkStatus();
    chief_.FailNext(&ChiefService::Heartbeat,
                    std::vector<absl::Status>(3, absl::UnavailableError("away")));
    chief_.Lose();
    chief_.AddLease(60, 0, 2);
    return RefusedByServer();
  };
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(chief_.sums().steps(), 3) << "one of the first membership";
}

}  // namespace
}  // namespace keelson
