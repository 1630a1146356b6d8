#include "core/model/id_coefficients.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::IsEmpty;

// Six records: of the second and the last one no id, of the fourth one an id twice.
FeatureValues Bags() {
  return {.ids = {3, 1, 4, 7, 1, 7, 0},
          .offsets = {0, 2, 2, 3, 6, 7, 7},
          .weights = {1, 3, 2, 1, 2, 2, -0.5f}};
}

std::vector<float> Coefficients(const IdEntries& entries, Combiner combiner) {
  std::vector<float> coefficients(entries.ids().size());
  CoefficientsOf(entries, combiner, absl::MakeSpan(coefficients));
  return coefficients;
}

TEST(IdEntriesTest, AreThoseOfAPartOfTheBatch) {
  const FeatureValues bags = Bags();
  IdEntries entries;
  entries.Set(bags, bags.ids, 0, 6);
  EXPECT_THAT(entries.offsets(), ElementsAre(0, 2, 2, 3, 6, 7, 7));
  EXPECT_THAT(entries.ids(), ElementsAre(3, 1, 4, 7, 1, 7, 0));
  entries.Set(bags, bags.ids, 1, 3);
  EXPECT_THAT(entries.offsets(), ElementsAre(0, 0, 1, 4));
  EXPECT_THAT(entries.ids(), ElementsAre(4, 7, 1, 7));
  EXPECT_THAT(entries.weights(), ElementsAre(2, 1, 2, 2));
  entries.Set(bags, bags.ids, 5, 1);
  EXPECT_THAT(entries.offsets(), ElementsAre(0, 0));
  EXPECT_THAT(entries.ids(), IsEmpty());
}

TEST(IdEntriesTest, OfOneIdEachHaveNoOffsetsInTheBatch) {
  IdEntries entries;
  const FeatureValues ids = {.ids = {5, 2, 5, 9}};
  entries.Set(ids, ids.ids, 1, 3);
  EXPECT_THAT(entries.offsets(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(entries.ids(), ElementsAre(2, 5, 9));
  EXPECT_THAT(entries.weights(), IsEmpty());
  EXPECT_THAT(Coefficients(entries, Combiner::kSum), ElementsAre(1, 1, 1));
}

TEST(IdEntriesTest, TransposedAreSortedByIdAndExample) {
  const FeatureValues bags = Bags();
  IdEntries entries;
  entries.Set(bags, bags.ids, 0, 6);
  entries.Transpose();
  EXPECT_THAT(entries.distinct_ids(), ElementsAre(0, 1, 3, 4, 7));
  EXPECT_THAT(entries.id_offsets(), ElementsAre(0, 1, 3, 4, 5, 7));
  EXPECT_THAT(entries.examples(), ElementsAre(4, 0, 3, 0, 2, 3, 3));
  EXPECT_THAT(entries.positions(), ElementsAre(6, 1, 4, 0, 2, 3, 5));
  // Nothing is left of that.
  entries.Set(bags, bags.ids, 5, 1);
  entries.Transpose();
  EXPECT_THAT(entries.distinct_ids(), IsEmpty());
  EXPECT_THAT(entries.id_offsets(), ElementsAre(0));
  EXPECT_THAT(entries.examples(), IsEmpty());
}

TEST(IdEntriesTest, OfManyIdsAreSortedToo) {
  // Ids of all sizes, each of them in several examples.
  FeatureValues ids;
  for (uint64_t k = 0; k < 5000; ++k) {
    const uint64_t n = k * 7919 % 1237;
    ids.ids.push_back(n * n * n % 2147483647);
  }
  IdEntries entries;
  entries.Set(ids, ids.ids, 0, 5000);
  entries.Transpose();
  const absl::Span<const int32_t> distinct = entries.distinct_ids(), begin = entries.id_offsets();
  EXPECT_EQ(distinct.size(), 1237u);
  EXPECT_GT(distinct.back(), 1 << 30);
  int32_t before = -1;
  size_t entry = 0;
  for (size_t i = 0; i < distinct.size(); ++i) {
    EXPECT_GT(distinct[i], before);
    before = distinct[i];
    ASSERT_EQ(static_cast<size_t>(begin[i]), entry);
    int32_t last = -1;
    for (; entry < static_cast<size_t>(begin[i + 1]); ++entry) {
      const int32_t position = entries.positions()[entry];
      EXPECT_EQ(entries.ids()[position], distinct[i]);
      EXPECT_EQ(entries.examples()[entry], position);
      EXPECT_GT(position, last);
      last = position;
    }
  }
  EXPECT_EQ(entry, 5000u);
}

TEST(IdCoefficientsTest, AreTheWeightsOverTheirSumOrTheRootOfTheirSquares) {
  const FeatureValues bags = Bags();
  IdEntries entries;
  entries.Set(bags, bags.ids, 0, 5);
  EXPECT_THAT(Coefficients(entries, Combiner::kSum), ElementsAre(1, 3, 2, 1, 2, 2, -0.5f));
  EXPECT_THAT(Coefficients(entries, Combiner::kMean),
              ElementsAre(0.25f, 0.75f, 1, 0.2f, 0.4f, 0.4f, 1));
  const float root = std::sqrt(10.0f);
  EXPECT_THAT(Coefficients(entries, Combiner::kSqrtN),
              ElementsAre(FloatEq(1 / root), FloatEq(3 / root), 1, FloatEq(1 / 3.0f),
                          FloatEq(2 / 3.0f), FloatEq(2 / 3.0f), -1));
}

TEST(IdCoefficientsTest, WithoutWeightsEachIdCountsOnce) {
  FeatureValues bags = Bags();
  bags.weights.clear();
  IdEntries entries;
  entries.Set(bags, bags.ids, 2, 2);
  EXPECT_THAT(Coefficients(entries, Combiner::kSum), ElementsAre(1, 1, 1, 1));
  const float third = 1 / 3.0f, root = 1 / std::sqrt(3.0f);
  EXPECT_THAT(Coefficients(entries, Combiner::kMean), ElementsAre(1, third, third, third));
  EXPECT_THAT(Coefficients(entries, Combiner::kSqrtN),
              ElementsAre(1, FloatEq(root), FloatEq(root), FloatEq(root)));
}

TEST(IdCoefficientsTest, AreZeroWhereTheSumIs) {
  const FeatureValues bags = {.ids = {1, 2, 3}, .offsets = {0, 2, 3}, .weights = {1.5f, -1.5f, 0}};
  IdEntries entries;
  entries.Set(bags, bags.ids, 0, 2);
  EXPECT_THAT(Coefficients(entries, Combiner::kMean), ElementsAre(0, 0, 0));
  EXPECT_THAT(Coefficients(entries, Combiner::kSum), ElementsAre(1.5f, -1.5f, 0));
  EXPECT_THAT(Coefficients(entries, Combiner::kSqrtN),
              ElementsAre(FloatEq(1 / std::sqrt(2.0f)), FloatEq(-1 / std::sqrt(2.0f)), 0));
}

}  // namespace
}  // namespace keelson
