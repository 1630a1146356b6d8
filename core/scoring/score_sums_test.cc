#include "core/scoring/score_sums.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/model/spec/score_model.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

EvaluationSums SumsOf(LossKind kind, int64_t outputs, const std::vector<float>& scores,
                      const std::vector<float>& labels,
                      const std::vector<MetricSpec>& metrics = {}) {
  return SumsOfScores(ScoreModel(kind, outputs).main_loss(), metrics, scores, labels);
}

TEST(ScoreSumsTest, OfClasses) {
  const EvaluationSums sums =
      SumsOf(LossKind::kSoftmaxCrossEntropy, 3, {1, 2, 3, 1000, 0, 0}, {0, 0},
             {{MetricSpec::Kind::kAccuracy},
              {MetricSpec::Kind::kTopK, 3},
              {MetricSpec::Kind::kPrecision}});
  EXPECT_EQ(sums.examples, 2);
  EXPECT_NEAR(sums.loss, std::log(1 + std::exp(1.0) + std::exp(2.0)), 1e-9);
  EXPECT_THAT(sums.correct, ElementsAre(1, 2, 0));
}

TEST(ScoreSumsTest, OfBinaryLabels) {
  const EvaluationSums sums = SumsOf(LossKind::kSigmoidCrossEntropy, 1, {0, 800, -800}, {1, 1, 1},
                                     {{MetricSpec::Kind::kAccuracy}});
  EXPECT_NEAR(sums.loss, std::log(2.0) + 800, 1e-9);
  EXPECT_THAT(sums.correct, ElementsAre(1));
}

TEST(ScoreSumsTest, OfNumbers) {
  EXPECT_NEAR(SumsOf(LossKind::kMeanSquaredError, 1, {1, -2}, {0.5, 0}).loss, 4.25, 1e-9);
  EXPECT_NEAR(SumsOf(LossKind::kHuber, 1, {0.5, 3}, {0, 0}).loss, 0.125 + 2.5, 1e-9);
}

TEST(ScoreSumsTest, OneThatIsNotANumberStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(SumsOf(LossKind::kSoftmaxCrossEntropy, 2, {nan, 1, 1, 0}, {0, 0}).loss));
  EXPECT_TRUE(std::isnan(SumsOf(LossKind::kMeanSquaredError, 1, {nan}, {0}).loss));
}

}  // namespace
}  // namespace keelson
