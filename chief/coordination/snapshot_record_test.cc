#include "chief/coordination/snapshot_record.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(SnapshotRecordTest, KnowsNothingAtFirst) {
  SnapshotRecord record;
  EXPECT_EQ(record.newest_step(), 0);
  EXPECT_EQ(record.evaluated_step(), -1);
  EXPECT_THAT(record.evaluation(), IsEmpty());
  EXPECT_TRUE(record.Acknowledge(0, 7, {{"loss", 2}})) << "the initial values";
  EXPECT_EQ(record.evaluated_step(), 0);
}

TEST(SnapshotRecordTest, ANamedSnapshotIsKnownByItsId) {
  SnapshotRecord record;
  record.Name(20, 5);
  EXPECT_FALSE(record.Acknowledge(20, 6, {{"loss", 1}})) << "training went back behind that one";
  EXPECT_EQ(record.evaluated_step(), -1);
  EXPECT_TRUE(record.Acknowledge(20, 5, {{"loss", 2}})) << "before it is the newest";
  EXPECT_THAT(record.evaluation(), ElementsAre(Pair("loss", 2)));
}

TEST(SnapshotRecordTest, AnotherSnapshotOfAStepTakesItsName) {
  SnapshotRecord record;
  record.Name(20, 5);
  record.Name(20, 6);
  EXPECT_FALSE(record.Acknowledge(20, 5, {}));
  EXPECT_TRUE(record.Acknowledge(20, 6, {}));
}

TEST(SnapshotRecordTest, OneWithoutANameIsTheJobsIfItIsNotLaterThanTheNewest) {
  SnapshotRecord record;
  record.SetNewest(10);
  EXPECT_FALSE(record.Acknowledge(11, 1, {}));
  EXPECT_TRUE(record.Acknowledge(10, 1, {})) << "a predecessor's";
}

TEST(SnapshotRecordTest, EvaluationsDoNotGoBack) {
  SnapshotRecord record;
  record.SetNewest(10);
  EXPECT_TRUE(record.Acknowledge(8, 1, {{"loss", 1}}));
  EXPECT_FALSE(record.Acknowledge(7, 1, {{"loss", 2}}));
  EXPECT_TRUE(record.Acknowledge(8, 1, {{"loss", 3}})) << "the same one again";
  EXPECT_EQ(record.evaluated_step(), 8);
  EXPECT_THAT(record.evaluation(), ElementsAre(Pair("loss", 3)));
}

TEST(SnapshotRecordTest, TheIdsOfTheLatestStepsAreRemembered) {
  SnapshotRecord record;
  const auto most = static_cast<int64_t>(SnapshotRecord::kMostNamed);
  for (int64_t step = 1; step <= most + 1; ++step) record.Name(step, 5);
  record.SetNewest(most + 1);
  EXPECT_TRUE(record.Acknowledge(1, 6, {})) << "nobody knows its id any more";
  EXPECT_FALSE(record.Acknowledge(2, 6, {}));
}

TEST(SnapshotRecordTest, ASuccessorContinuesWithTheLaterSteps) {
  SnapshotRecord first;
  first.SetNewest(10);
  ASSERT_TRUE(first.Acknowledge(8, 1, {{"loss", 1}}));
  v1::PersistedJobState persisted;
  first.ToPersisted(&persisted);

  SnapshotRecord second;
  second.SetNewest(12);
  second.TakeOver(persisted);
  EXPECT_EQ(second.newest_step(), 12);
  EXPECT_EQ(second.evaluated_step(), 8);
  EXPECT_THAT(second.evaluation(), IsEmpty());
  EXPECT_FALSE(second.Acknowledge(7, 1, {}));
}

// A chief that was restarted hears of an evaluation before it knows which snapshots are the job's.
TEST(SnapshotRecordTest, AnEvaluationThatComesBeforeItsSnapshotIsKnownCounts) {
  v1::PersistedJobState persisted;
  persisted.set_snapshot_step(28);
  SnapshotRecord adopting;
  EXPECT_FALSE(adopting.Acknowledge(28, 5, {{"loss", 1}}));
  EXPECT_EQ(adopting.evaluated_step(), -1);
  adopting.TakeOver(persisted);
  EXPECT_EQ(adopting.evaluated_step(), 28);
  EXPECT_THAT(adopting.evaluation(), ElementsAre(Pair("loss", 1)));

  SnapshotRecord restoring;
  EXPECT_FALSE(restoring.Acknowledge(28, 5, {{"loss", 1}}));
  restoring.Name(28, 5);
  EXPECT_EQ(restoring.evaluated_step(), 28);

  SnapshotRecord other;
  EXPECT_FALSE(other.Acknowledge(28, 5, {{"loss", 1}}));
  other.SetNewest(20);
  EXPECT_EQ(other.evaluated_step(), -1);
  other.Name(28, 6);
  other.SetNewest(28);
  EXPECT_EQ(other.evaluated_step(), -1) << "training went back behind that one";
}

}  // namespace
}  // namespace keelson
