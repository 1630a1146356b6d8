#include "core/scoring/class_counts.h"

#include <cmath>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ClassCountsTest, ByHand) {
  ClassCounts counts(3);
  // Labels 0, 0, 0, 1, 1; class 2 has no example.
  counts.Add(0, 0);
  counts.Add(0, 0);
  counts.Add(0, 1);
  counts.Add(1, 1);
  counts.Add(1, 2);
  EXPECT_DOUBLE_EQ(counts.Accuracy(), 0.6);
  EXPECT_THAT(counts.Confusion(),
              ElementsAre(ElementsAre(2, 1, 0), ElementsAre(0, 1, 1), ElementsAre(0, 0, 0)));
  const std::vector<ClassQuality> qualities = counts.Qualities();
  EXPECT_DOUBLE_EQ(qualities[0].precision, 1);
  EXPECT_DOUBLE_EQ(qualities[0].recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(qualities[0].f1, 0.8);
  EXPECT_EQ(qualities[0].support, 3);
  EXPECT_DOUBLE_EQ(qualities[1].precision, 0.5);
  EXPECT_DOUBLE_EQ(qualities[1].recall, 0.5);
  EXPECT_EQ(qualities[2].precision, 0);
  EXPECT_EQ(qualities[2].recall, 0);
  EXPECT_EQ(qualities[2].f1, 0);
  EXPECT_EQ(qualities[2].support, 0);
  const ClassQuality mean = MeanOfClasses(qualities);
  EXPECT_DOUBLE_EQ(mean.precision, 0.75) << "of the two classes that have examples";
  EXPECT_DOUBLE_EQ(mean.recall, (2.0 / 3 + 0.5) / 2);
  EXPECT_EQ(mean.support, 5);
}

TEST(ClassCountsTest, NoPredictionIsRightForNoLabel) {
  ClassCounts counts(2);
  counts.Add(0, -1);
  counts.Add(0, 0);
  EXPECT_DOUBLE_EQ(counts.Accuracy(), 0.5);
  EXPECT_DOUBLE_EQ(counts.Qualities()[0].recall, 0.5);
  EXPECT_THAT(counts.Confusion(), ElementsAre(ElementsAre(1, 0), ElementsAre(0, 0)));
}

TEST(ClassCountsTest, ManyClassesHaveNoMatrix) {
  ClassCounts most(ClassCounts::kMaxConfusionClasses);
  ClassCounts more(ClassCounts::kMaxConfusionClasses + 1);
  EXPECT_THAT(most.Confusion(), SizeIs(200));
  more.Add(200, 200);
  EXPECT_THAT(more.Confusion(), IsEmpty());
  EXPECT_DOUBLE_EQ(more.Qualities()[200].recall, 1);
}

TEST(ClassCountsTest, Empty) {
  EXPECT_TRUE(std::isnan(ClassCounts(2).Accuracy()));
  EXPECT_EQ(MeanOfClasses(ClassCounts(2).Qualities()).precision, 0);
}

}  // namespace
}  // namespace keelson
