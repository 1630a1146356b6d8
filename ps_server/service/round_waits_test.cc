#include "ps_server/service/round_waits.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

class RoundWaitsTest : public testing::Test {
 protected:
  // Whether what waits for the round may go on; otherwise it counts in woken_ when it may.
  bool MayGoOn(int64_t round) {
    return waits_.MayGoOn(
        round, [this] { return committed_; }, [this] { ++woken_; });
  }
  void Commit() { waits_.WakeUpTo(++committed_); }

  int64_t committed_ = 5;
  int woken_ = 0;
  RoundWaits waits_;
};

TEST_F(RoundWaitsTest, WhatIsCommittedIsNotWaitedFor) {
  EXPECT_TRUE(MayGoOn(0));
  EXPECT_TRUE(MayGoOn(5));
  Commit();
  EXPECT_EQ(woken_, 0);
}

TEST_F(RoundWaitsTest, EachWaitEndsOnceWithItsRound) {
  EXPECT_FALSE(MayGoOn(6));
  EXPECT_FALSE(MayGoOn(6));
  EXPECT_FALSE(MayGoOn(7));
  Commit();
  EXPECT_EQ(woken_, 2);
  EXPECT_TRUE(MayGoOn(6));
  Commit();
  EXPECT_EQ(woken_, 3);
}

TEST_F(RoundWaitsTest, WakeAllEndsEveryWait) {
  EXPECT_FALSE(MayGoOn(6));
  EXPECT_FALSE(MayGoOn(1000));
  waits_.WakeAll();
  EXPECT_EQ(woken_, 2);
}

// The commit is noted while somebody asks.
TEST_F(RoundWaitsTest, AWakeMayAskAgain) {
  int asked = 0;
  const auto committed = [this] { return committed_; };
  EXPECT_FALSE(waits_.MayGoOn(
      6, committed, [&] { asked = waits_.MayGoOn(7, committed, [this] { ++woken_; }) ? 1 : 2; }));
  Commit();
  EXPECT_EQ(asked, 2);
  Commit();
  EXPECT_EQ(woken_, 1);
}

}  // namespace
}  // namespace keelson
