#include "chief/coordination/staleness_bound.h"

#include <algorithm>
#include <random>

#include "chief/coordination/work_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(StalenessBoundTest, OneWorkerIsNeverHeldUp) {
  StalenessBound bound(0);
  bound.Join(kAlice, 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(bound.Allowance(kAlice), 1);
    bound.Granted(kAlice, 1);
    EXPECT_EQ(bound.Allowance(kAlice), 0);
    bound.Completed(kAlice, 1);
  }
}

TEST(StalenessBoundTest, ZeroIsLockstep) {
  StalenessBound bound(0);
  bound.Join(kAlice, 0);
  bound.Join(kBob, 0);
  bound.Granted(kAlice, 1);
  bound.Completed(kAlice, 1);
  EXPECT_EQ(bound.Allowance(kAlice), 0);
  EXPECT_EQ(bound.Allowance(kBob), 1);
  bound.Granted(kBob, 1);
  EXPECT_EQ(bound.Allowance(kAlice), 0);
  bound.Completed(kBob, 1);
  EXPECT_EQ(bound.Allowance(kAlice), 1);
}

TEST(StalenessBoundTest, TheFastestIsAtMostTheBoundAhead) {
  StalenessBound bound(3);
  bound.Join(kAlice, 0);
  bound.Join(kBob, 0);
  EXPECT_EQ(bound.Allowance(kAlice), 4);
  bound.Granted(kAlice, 4);
  bound.Completed(kAlice, 4);
  EXPECT_EQ(bound.Allowance(kAlice), 0);
  bound.Granted(kBob, 2);
  bound.Completed(kBob, 2);
  EXPECT_EQ(bound.Allowance(kAlice), 2);
}

TEST(StalenessBoundTest, WhoLeavesIsNotWaitedFor) {
  StalenessBound bound(0);
  bound.Join(kAlice, 0);
  bound.Join(kBob, 0);
  bound.Granted(kAlice, 1);
  bound.Completed(kAlice, 1);
  ASSERT_EQ(bound.Allowance(kAlice), 0);
  bound.Leave(kBob);
  EXPECT_EQ(bound.Allowance(kAlice), 1);
  // Late news of it are nothing.
  bound.Completed(kBob, 1);
}

TEST(StalenessBoundTest, ANewcomerStartsWithTheSlowest) {
  StalenessBound bound(1);
  bound.Join(kAlice, 0);
  bound.Granted(kAlice, 2);
  bound.Completed(kAlice, 2);
  bound.Join(kBob, 0);
  EXPECT_EQ(bound.Allowance(kBob), 2);
  EXPECT_EQ(bound.Allowance(kAlice), 2);
}

TEST(StalenessBoundTest, WorkThatIsHeldCounts) {
  StalenessBound bound(1);
  bound.Join(kAlice, 5);
  EXPECT_EQ(bound.Allowance(kAlice), 0);
  bound.Completed(kAlice, 4);
  EXPECT_EQ(bound.Allowance(kAlice), 1);
  // Joining again changes nothing.
  bound.Join(kAlice, 9);
  EXPECT_EQ(bound.Allowance(kAlice), 1);
}

TEST(StalenessBoundTest, HoldsForRandomWorkers) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int64_t high) {
      return std::uniform_int_distribution<int64_t>(0, high)(random);
    };
    const int64_t staleness = draw(5);
    StalenessBound bound(staleness);
    struct Worker {
      int64_t granted = 0, completed = 0;
    };
    std::map<uint64_t, Worker> workers;
    for (uint64_t w = 0; w < 4; ++w) {
      bound.Join(w, 0);
      workers[w] = {};
    }
    for (int i = 0; i < 500; ++i) {
      const uint64_t w = static_cast<uint64_t>(draw(3));
      Worker& worker = workers[w];
      if (draw(1) == 0) {
        const int64_t tickets = std::min(bound.Allowance(w), draw(3));
        bound.Granted(w, tickets);
        worker.granted += tickets;
      } else {
        const int64_t tickets = std::min(worker.granted - worker.completed, draw(3));
        bound.Completed(w, tickets);
        worker.completed += tickets;
      }
      int64_t slowest = worker.completed;
      bool somebody_can_go_on = false;
      for (const auto& [id, other] : workers) slowest = std::min(slowest, other.completed);
      for (const auto& [id, other] : workers) {
        ASSERT_LE(other.granted, slowest + staleness + 1);
        somebody_can_go_on |= bound.Allowance(id) > 0 || other.granted > other.completed;
      }
      ASSERT_TRUE(somebody_can_go_on);
    }
  }
}

}  // namespace
}  // namespace keelson
