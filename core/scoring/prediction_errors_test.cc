#include "core/scoring/prediction_errors.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

TEST(PredictionErrorsTest, ByHand) {
  PredictionErrors errors;
  EXPECT_TRUE(std::isnan(errors.MeanSquared()));
  EXPECT_TRUE(std::isnan(errors.MeanAbsolute()));
  errors.Add(1, 3);
  errors.Add(5, 4);
  EXPECT_DOUBLE_EQ(errors.MeanSquared(), 2.5);
  EXPECT_DOUBLE_EQ(errors.MeanAbsolute(), 1.5);
}

TEST(PairSampleTest, IsTheSameInAnyOrder) {
  PairSample forwards;
  PairSample backwards;
  constexpr int64_t kRecords = 5000;
  for (int64_t i = 0; i < kRecords; ++i) {
    forwards.Add(i, static_cast<float>(i), 1);
    backwards.Add(kRecords - 1 - i, static_cast<float>(kRecords - 1 - i), 1);
  }
  const auto pairs = forwards.Pairs();
  ASSERT_THAT(pairs, SizeIs(PairSample::kPairs));
  EXPECT_EQ(pairs, backwards.Pairs());
  EXPECT_TRUE(std::is_sorted(pairs.begin(), pairs.end()));
  // The sample has pairs of all parts of the records.
  const auto late = std::count_if(pairs.begin(), pairs.end(),
                                  [](const auto& pair) { return pair.first >= kRecords / 2; });
  EXPECT_NEAR(static_cast<double>(late), 250, 50);
}

TEST(PairSampleTest, FewAreAllThere) {
  PairSample sample;
  sample.Add(2, 20, 21);
  sample.Add(1, 10, 11);
  EXPECT_THAT(sample.Pairs(), ElementsAre(Pair(10, 11), Pair(20, 21)));
}

}  // namespace
}  // namespace keelson
