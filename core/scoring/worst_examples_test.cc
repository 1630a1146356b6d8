#include "core/scoring/worst_examples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

WrongExample Bad(int64_t record, double badness) {
  WrongExample example;
  example.record = record;
  example.badness = badness;
  return example;
}

// A record of numbers.
Batch BatchOf(const std::vector<float>& numbers) {
  Batch batch =
      MakeBatch(Tensor(Shape({1, static_cast<int64_t>(numbers.size())})), Tensor(Shape({1})));
  std::copy(numbers.begin(), numbers.end(), batch.features[0].numbers.data());
  return batch;
}

TEST(WorstExamplesTest, KeepsTheWorst) {
  WorstExamples worst;
  constexpr int64_t kRecords = 100;
  for (int64_t i = 0; i < kRecords; ++i) {
    const int64_t record = i * 37 % kRecords;
    worst.Add(Bad(record, static_cast<double>(record)), BatchOf({}), 0);
  }
  worst.Add(Bad(kRecords, NAN), BatchOf({}), 0);
  ASSERT_THAT(worst.worst(), SizeIs(WorstExamples::kExamples));
  EXPECT_EQ(worst.worst()[0].record, kRecords) << "not a number";
  for (size_t i = 1; i < WorstExamples::kExamples; ++i) {
    EXPECT_EQ(worst.worst()[i].record, kRecords - static_cast<int64_t>(i));
  }
}

TEST(WorstExamplesTest, OfEqualOnesTheFirstRecords) {
  WorstExamples worst;
  for (int64_t record = 49; record >= 0; --record) worst.Add(Bad(record, 1), BatchOf({}), 0);
  ASSERT_THAT(worst.worst(), SizeIs(WorstExamples::kExamples));
  for (size_t i = 0; i < WorstExamples::kExamples; ++i) {
    EXPECT_EQ(worst.worst()[i].record, static_cast<int64_t>(i));
  }
}

TEST(WorstExamplesTest, InputsAreBytes) {
  WorstExamples worst;
  worst.Add(Bad(0, 1), BatchOf({0, 1, 0.5f, -3, 7, NAN}), 0);
  EXPECT_THAT(worst.worst()[0].input, ElementsAre(0, 255, 128, 0, 255, 0));
  const std::vector<float> most(WorstExamples::kMaxInputBytes);
  worst.Add(Bad(1, 2), BatchOf(most), 0);
  EXPECT_THAT(worst.worst()[0].input, SizeIs(WorstExamples::kMaxInputBytes));
  const std::vector<float> more(WorstExamples::kMaxInputBytes + 1);
  worst.Add(Bad(2, 3), BatchOf(more), 0);
  EXPECT_THAT(worst.worst()[0].input, IsEmpty());
}

TEST(WorstExamplesTest, FeaturesOfEachKind) {
  // Two records of numbers, an id, a bag and a weighted bag, of which the first one is empty.
  Batch batch = MakeBatch(Tensor(Shape({2, 40})), Tensor(Shape({2})));
  std::iota(batch.features[0].numbers.span().begin(), batch.features[0].numbers.span().end(), 0.0f);
  batch.features.push_back({.ids = {7, UINT64_MAX}});
  batch.features.push_back({.ids = std::vector<uint64_t>(41), .offsets = {0, 1, 41}});
  std::iota(batch.features[2].ids.begin(), batch.features[2].ids.end(), 100);
  batch.features.push_back({.ids = {5, 6}, .offsets = {0, 0, 2}, .weights = {0.5f, -1}});
  WorstExamples worst;
  worst.Add(Bad(10, 2), batch, 0);
  worst.Add(Bad(11, 1), batch, 1);
  ASSERT_THAT(worst.worst(), SizeIs(2));
  for (const WrongExample& example : worst.worst()) {
    EXPECT_THAT(example.input, IsEmpty());
    ASSERT_THAT(example.features, SizeIs(4));
  }
  const std::vector<ExampleValues>& first = worst.worst()[0].features;
  EXPECT_THAT(first[0].numbers, SizeIs(WorstExamples::kValues));
  EXPECT_EQ(first[0].count, 40);
  EXPECT_THAT(first[1].ids, ElementsAre(7));
  EXPECT_THAT(first[2].ids, ElementsAre(100));
  EXPECT_THAT(first[3].ids, IsEmpty());
  EXPECT_EQ(first[3].count, 0);
  const std::vector<ExampleValues>& second = worst.worst()[1].features;
  EXPECT_EQ(second[0].numbers.front(), 40);
  EXPECT_THAT(second[1].ids, ElementsAre(UINT64_MAX));
  EXPECT_EQ(second[1].count, 1);
  EXPECT_THAT(second[1].numbers, IsEmpty());
  EXPECT_THAT(second[2].ids, SizeIs(WorstExamples::kValues));
  EXPECT_EQ(second[2].ids.front(), 101);
  EXPECT_EQ(second[2].count, 40);
  EXPECT_THAT(second[2].weights, IsEmpty());
  EXPECT_THAT(second[3].ids, ElementsAre(5, 6));
  EXPECT_THAT(second[3].weights, ElementsAre(0.5f, -1));
}

}  // namespace
}  // namespace keelson
