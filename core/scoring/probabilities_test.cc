#include "core/scoring/probabilities.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;

TEST(ProbabilitiesTest, Softmax) {
  std::vector<float> scores = {0, std::log(3.0f), /**/ 1000, -1000};
  ScoresToProbabilities(LossKind::kSoftmaxCrossEntropy, 2, absl::MakeSpan(scores));
  EXPECT_THAT(scores, ElementsAre(testing::FloatEq(0.25f), testing::FloatEq(0.75f), 1, 0));
}

TEST(ProbabilitiesTest, Sigmoid) {
  std::vector<float> scores = {0, std::log(3.0f), 1000, -1000};
  ScoresToProbabilities(LossKind::kSigmoidCrossEntropy, 1, absl::MakeSpan(scores));
  EXPECT_THAT(scores, ElementsAre(0.5f, testing::FloatEq(0.75f), 1, 0));
}

TEST(ProbabilitiesTest, RegressionIsTheScore) {
  std::vector<float> scores = {-2, 7};
  ScoresToProbabilities(LossKind::kMeanSquaredError, 1, absl::MakeSpan(scores));
  EXPECT_THAT(scores, ElementsAre(-2, 7));
}

TEST(PredictedClassTest, OfEqualScoresTheFirstAndNoneForNotANumber) {
  EXPECT_EQ(PredictedClass(std::vector<float>{1, 3, 3}), 1);
  EXPECT_EQ(PredictedClass(std::vector<float>{-INFINITY, -INFINITY}), 0);
  EXPECT_EQ(PredictedClass(std::vector<float>{1, NAN, 3}), -1);
}

}  // namespace
}  // namespace keelson
