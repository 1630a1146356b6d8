#include "chief/coordination/evaluations.h"

#include <thread>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

class EvaluationsTest : public CoordinatorTest {};

TEST_F(EvaluationsTest, OnlyEvaluationsOfTheJobsSnapshotsCount) {
  coordinator_.evaluations()->NameSnapshot(100, 7);
  coordinator_.evaluations()->SetSnapshotStep(100);
  coordinator_.evaluations()->AcknowledgeEvaluation(200, 6, {{"loss", 0.1}});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, -1)
      << "training went back behind step 200";
  coordinator_.evaluations()->AcknowledgeEvaluation(50, 5, {{"loss", 0.9}});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, 50) << "a predecessor's";
  coordinator_.evaluations()->NameSnapshot(200, 8);
  coordinator_.evaluations()->AcknowledgeEvaluation(200, 6, {{"loss", 0.1}});
  EXPECT_FALSE(coordinator_.evaluations()->WaitForEvaluation(200, kNoWait, stop_));
  coordinator_.evaluations()->AcknowledgeEvaluation(200, 8, {{"loss", 0.2}});
  EXPECT_TRUE(coordinator_.evaluations()->WaitForEvaluation(200, kNoWait, stop_))
      << "at once, before SetSnapshotStep";
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluation.at("loss"), 0.2);
}

TEST_F(EvaluationsTest, WaitForEvaluationTakesItsStepOrALaterOne) {
  coordinator_.evaluations()->SetSnapshotStep(6);
  EXPECT_FALSE(coordinator_.evaluations()->WaitForEvaluation(5, kNoWait, stop_));
  coordinator_.evaluations()->AcknowledgeEvaluation(4, 0, {{"accuracy", 0.4}});
  EXPECT_FALSE(coordinator_.evaluations()->WaitForEvaluation(5, kNoWait, stop_));
  std::thread scores([&] {
    coordinator_.evaluations()->AcknowledgeEvaluation(6, 0, {{"accuracy", 0.6}});
  });
  EXPECT_TRUE(coordinator_.evaluations()->WaitForEvaluation(5, kLong, stop_));
  scores.join();
  coordinator_.evaluations()->AcknowledgeEvaluation(3, 0, {{"accuracy", 0.3}});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, 6);
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluation.at("accuracy"), 0.6);
}

TEST_F(EvaluationsTest, WaitForEvaluationEndsWithStop) {
  stop_.Raise();
  EXPECT_FALSE(coordinator_.evaluations()->WaitForEvaluation(5, kLong, stop_));
}

}  // namespace
}  // namespace keelson
