#include "core/scoring/value_slices.h"

#include <cmath>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void AddSome(uint64_t id, int examples, ValueSlices* slices) {
  for (int i = 0; i < examples; ++i) slices->Add(id, 0, i % 2 == 0);
}

std::vector<uint64_t> Ids(const std::vector<ValueSlice>& slices) {
  std::vector<uint64_t> ids;
  for (const ValueSlice& slice : slices) ids.push_back(slice.id);
  return ids;
}

TEST(ValueSlicesTest, TheMostFrequentIdsComeFirst) {
  ValueSlices slices;
  EXPECT_THAT(slices.MostFrequent(5), IsEmpty());
  EXPECT_THAT(slices.ByFrequency(), IsEmpty());
  AddSome(7, 2, &slices);
  AddSome(9, 5, &slices);
  AddSome(3, 2, &slices);
  AddSome(~uint64_t{0}, 1, &slices);
  EXPECT_THAT(Ids(slices.MostFrequent(9)), ElementsAre(9, 3, 7, ~uint64_t{0}));
  EXPECT_THAT(Ids(slices.MostFrequent(2)), ElementsAre(9, 3));
  EXPECT_EQ(slices.ids(), 4u);
  EXPECT_EQ(slices.others().examples(), 0);
}

TEST(ValueSlicesTest, SumsAreThoseOfTheIdsExamples) {
  ValueSlices slices;
  slices.Add(1, std::log(3.0f), true);    // probability 0.75
  slices.Add(1, -std::log(3.0f), false);  // 0.25
  slices.Add(2, 0, true);
  const BinaryTotals totals = slices.MostFrequent(1)[0].totals;
  EXPECT_EQ(totals.examples(), 2);
  EXPECT_DOUBLE_EQ(totals.PositiveShare(), 0.5);
  EXPECT_NEAR(totals.MeanProbability(), 0.5, 1e-7);
  EXPECT_NEAR(totals.CrossEntropy(), -std::log(0.75), 1e-7);
}

TEST(ValueSlicesTest, IdsOfOneFrequencyAreOneSlice) {
  ValueSlices slices;
  AddSome(1, 1, &slices);
  AddSome(2, 1, &slices);
  AddSome(3, 4, &slices);
  AddSome(4, 7, &slices);
  AddSome(5, 8, &slices);
  const std::vector<FrequencySlice> found = slices.ByFrequency();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].from, 1);
  EXPECT_EQ(found[0].to, 1);
  EXPECT_EQ(found[0].ids, 2);
  EXPECT_EQ(found[0].totals.examples(), 2);
  EXPECT_EQ(found[1].from, 4);
  EXPECT_EQ(found[1].to, 7);
  EXPECT_EQ(found[1].ids, 2);
  EXPECT_EQ(found[1].totals.examples(), 11);
  EXPECT_EQ(found[2].from, 8);
}

TEST(ValueSlicesTest, IdsBeyondThoseThatAreKeptAreSummedUpTogether) {
  ValueSlices slices(2);
  AddSome(1, 1, &slices);
  AddSome(2, 1, &slices);
  AddSome(3, 4, &slices);
  AddSome(1, 2, &slices);
  EXPECT_EQ(slices.ids(), 2u);
  EXPECT_EQ(slices.others().examples(), 4);
  EXPECT_THAT(Ids(slices.MostFrequent(9)), ElementsAre(1, 2));
}

}  // namespace
}  // namespace keelson
