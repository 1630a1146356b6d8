#include "chief/coordination/sync_rounds.h"

#include "chief/coordination/work_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr RecordRange kFirst = {0, 0, 10}, kSecond = {0, 10, 20}, kThird = {0, 20, 30};
using Round = SyncRounds::Round;

// Two of three count.
class ContestedRoundTest : public testing::Test {
 protected:
  ContestedRoundTest() { rounds_.Open(7, 1, {kFirst, kSecond, kThird}); }

  SyncRounds rounds_{2};
};

TEST_F(ContestedRoundTest, TheFirstToAskCount) {
  EXPECT_TRUE(rounds_.contested());
  EXPECT_FALSE(rounds_.AnyGranted());
  EXPECT_THAT(rounds_.Grant(kAlice, 1, 3), Optional(kFirst));
  EXPECT_THAT(rounds_.Grant(kBob, 2, 3), Optional(kSecond));
  EXPECT_THAT(rounds_.Grant(kCarol, 3, 3), Optional(kThird));
  EXPECT_TRUE(rounds_.AnyGranted());
  EXPECT_TRUE(rounds_.Admit(kCarol, 3, 1));
  EXPECT_TRUE(rounds_.Admit(kAlice, 1, 1));
  EXPECT_FALSE(rounds_.Admit(kBob, 2, 1));
  // Asked again, the answers are the same.
  EXPECT_TRUE(rounds_.Admit(kCarol, 3, 1));
  EXPECT_FALSE(rounds_.Admit(kBob, 2, 1));
  EXPECT_TRUE(rounds_.Stage(kAlice, 1));
  EXPECT_EQ(rounds_.Staged(), std::nullopt);
  EXPECT_TRUE(rounds_.Stage(kCarol, 3));
  EXPECT_EQ(rounds_.Staged(), (Round{7, 1, 2}));
  EXPECT_THAT(rounds_.StagedBatches(), ElementsAre(kFirst, kThird));
}

TEST_F(ContestedRoundTest, WhatWasNotAdmittedIsNotStaged) {
  ASSERT_TRUE(rounds_.Grant(kAlice, 1, 3).has_value());
  EXPECT_FALSE(rounds_.Stage(kAlice, 1));
  EXPECT_FALSE(rounds_.Stage(kBob, 1));
  EXPECT_FALSE(rounds_.Stage(kAlice, 2));
}

TEST_F(ContestedRoundTest, AdmissionIsForTheHolderOfThisAttempt) {
  ASSERT_TRUE(rounds_.Grant(kAlice, 1, 3).has_value());
  EXPECT_FALSE(rounds_.Admit(kBob, 1, 1));
  EXPECT_FALSE(rounds_.Admit(kAlice, 2, 1));
  EXPECT_FALSE(rounds_.Admit(kAlice, 1, 2));
  rounds_.Restart(2);
  EXPECT_FALSE(rounds_.Admit(kAlice, 1, 1));
  EXPECT_FALSE(rounds_.Admit(kAlice, 1, 2));
}

TEST_F(ContestedRoundTest, AWorkerHasOneTicket) {
  ASSERT_TRUE(rounds_.Grant(kAlice, 1, 3).has_value());
  EXPECT_EQ(rounds_.Grant(kAlice, 2, 3), std::nullopt);
}

TEST_F(ContestedRoundTest, FewWorkersShareWhatCounts) {
  // Two of the three tickets are enough, and there is no worker for the third.
  ASSERT_TRUE(rounds_.Grant(kAlice, 1, 1).has_value());
  ASSERT_TRUE(rounds_.Grant(kAlice, 2, 1).has_value());
  EXPECT_EQ(rounds_.Grant(kAlice, 3, 1), std::nullopt);
  // A second worker has come, but both are out.
  EXPECT_EQ(rounds_.Grant(kBob, 4, 2), std::nullopt);
  EXPECT_THAT(rounds_.Grant(kBob, 4, 3), Optional(kThird));
}

TEST_F(ContestedRoundTest, NothingIsHandedOutOnceItIsDecided) {
  ASSERT_TRUE(rounds_.Grant(kAlice, 1, 3).has_value());
  ASSERT_TRUE(rounds_.Grant(kBob, 2, 3).has_value());
  ASSERT_TRUE(rounds_.Admit(kAlice, 1, 1));
  ASSERT_TRUE(rounds_.Admit(kBob, 2, 1));
  EXPECT_EQ(rounds_.Grant(kCarol, 3, 3), std::nullopt);
}

TEST_F(ContestedRoundTest, ALostTicketThatWasNotAdmittedGoesToAnother) {
  ASSERT_TRUE(rounds_.Grant(kAlice, 1, 2).has_value());
  ASSERT_TRUE(rounds_.Grant(kBob, 2, 2).has_value());
  ASSERT_EQ(rounds_.Grant(kCarol, 3, 2), std::nullopt);
  EXPECT_TRUE(rounds_.Lose(kAlice));
  EXPECT_FALSE(rounds_.Admit(kAlice, 1, 1));
  EXPECT_THAT(rounds_.Grant(kCarol, 4, 2), Optional(kFirst));
  EXPECT_TRUE(rounds_.Admit(kCarol, 4, 1));
}

TEST_F(ContestedRoundTest, ALostTicketThatWasAdmittedBreaksTheAttempt) {
  ASSERT_TRUE(rounds_.Grant(kAlice, 1, 3).has_value());
  ASSERT_TRUE(rounds_.Grant(kBob, 2, 3).has_value());
  ASSERT_TRUE(rounds_.Admit(kAlice, 1, 1));
  ASSERT_TRUE(rounds_.Admit(kBob, 2, 1));
  ASSERT_TRUE(rounds_.Stage(kBob, 2));
  EXPECT_FALSE(rounds_.Lose(kAlice));
  rounds_.Restart(5);
  EXPECT_FALSE(rounds_.AnyGranted());
  EXPECT_THAT(rounds_.Grant(kBob, 3, 2), Optional(kFirst));
  EXPECT_EQ(rounds_.attempt(), 5u);
  EXPECT_FALSE(rounds_.Holds(kBob, 2));
}

TEST_F(ContestedRoundTest, AStagedTicketOutlivesItsWorker) {
  ASSERT_TRUE(rounds_.Grant(kAlice, 1, 3).has_value());
  ASSERT_TRUE(rounds_.Grant(kBob, 2, 3).has_value());
  ASSERT_TRUE(rounds_.Admit(kAlice, 1, 1));
  ASSERT_TRUE(rounds_.Stage(kAlice, 1));
  EXPECT_TRUE(rounds_.Lose(kAlice));
  ASSERT_TRUE(rounds_.Admit(kBob, 2, 1));
  ASSERT_TRUE(rounds_.Stage(kBob, 2));
  EXPECT_EQ(rounds_.Staged(), (Round{7, 1, 2}));
}

TEST(SyncRoundsTest, UncontestedTicketsAreAdmittedAtOnce) {
  SyncRounds rounds(2);
  rounds.Open(0, 1, {kFirst, kSecond});
  EXPECT_FALSE(rounds.contested());
  ASSERT_TRUE(rounds.Grant(kAlice, 1, 2).has_value());
  ASSERT_TRUE(rounds.Grant(kBob, 2, 2).has_value());
  EXPECT_TRUE(rounds.Admit(kAlice, 1, 1));
  EXPECT_TRUE(rounds.Stage(kAlice, 1));
  // A part of it may be at a server.
  EXPECT_FALSE(rounds.Lose(kBob));
}

TEST(SyncRoundsTest, MoreWorkersThanTicketsWait) {
  SyncRounds rounds(1);
  rounds.Open(0, 1, {kFirst});
  ASSERT_TRUE(rounds.Grant(kAlice, 1, 2).has_value());
  EXPECT_EQ(rounds.Grant(kBob, 2, 2), std::nullopt);
}

TEST(SyncRoundsTest, AClosedRoundKnowsNobody) {
  SyncRounds rounds(1);
  EXPECT_FALSE(rounds.open());
  EXPECT_EQ(rounds.Staged(), std::nullopt);
  EXPECT_EQ(rounds.Grant(kAlice, 1, 1), std::nullopt);
  rounds.Open(0, 1, {kFirst});
  ASSERT_TRUE(rounds.Grant(kAlice, 1, 1).has_value());
  rounds.Close();
  EXPECT_FALSE(rounds.Admit(kAlice, 1, 1));
  EXPECT_FALSE(rounds.Stage(kAlice, 1));
  EXPECT_TRUE(rounds.Lose(kAlice));
}

// With places, who asks first makes no difference.
TEST(PlacedRoundTest, TicketsGoRoundTheWorkers) {
  SyncRounds rounds(3);
  rounds.Open(7, 1, {kFirst, kSecond, kThird});
  EXPECT_THAT(rounds.Grant(kBob, 1, 2, /*place=*/1), Optional(kSecond));
  EXPECT_EQ(rounds.Grant(kBob, 2, 2, 1), std::nullopt) << "the others are Alice's";
  EXPECT_THAT(rounds.Grant(kAlice, 3, 2, 0), Optional(kFirst));
  EXPECT_THAT(rounds.Grant(kAlice, 4, 2, 0), Optional(kThird));
  EXPECT_EQ(rounds.PlaceOf(kBob, 1), 1u);
  EXPECT_EQ(rounds.PlaceOf(kAlice, 4), 2u);
}

TEST(PlacedRoundTest, TheTicketsOfALostWorkerGoToWhoIsLeft) {
  SyncRounds rounds(3);
  rounds.Open(7, 1, {kFirst, kSecond, kThird});
  ASSERT_TRUE(rounds.Grant(kAlice, 1, 3, 0).has_value());
  ASSERT_TRUE(rounds.Grant(kBob, 2, 3, 1).has_value());
  ASSERT_TRUE(rounds.Grant(kCarol, 3, 3, 2).has_value());
  ASSERT_FALSE(rounds.Lose(kAlice));
  rounds.Restart(2);
  EXPECT_THAT(rounds.Grant(kCarol, 4, 2, 1), Optional(kSecond));
  EXPECT_EQ(rounds.Grant(kCarol, 5, 2, 1), std::nullopt);
  EXPECT_THAT(rounds.Grant(kBob, 6, 2, 0), Optional(kFirst));
  EXPECT_THAT(rounds.Grant(kBob, 7, 2, 0), Optional(kThird));
}

}  // namespace
}  // namespace keelson
