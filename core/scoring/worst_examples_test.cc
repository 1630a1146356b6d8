#include "core/scoring/worst_examples.h"

#include <cmath>

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

TEST(WorstExamplesTest, KeepsTheWorst) {
  WorstExamples worst;
  constexpr int64_t kRecords = 100;
  for (int64_t i = 0; i < kRecords; ++i) {
    const int64_t record = i * 37 % kRecords;
    worst.Add(Bad(record, static_cast<double>(record)), {});
  }
  worst.Add(Bad(kRecords, NAN), {});
  ASSERT_THAT(worst.worst(), SizeIs(WorstExamples::kExamples));
  EXPECT_EQ(worst.worst()[0].record, kRecords) << "not a number";
  for (size_t i = 1; i < WorstExamples::kExamples; ++i) {
    EXPECT_EQ(worst.worst()[i].record, kRecords - static_cast<int64_t>(i));
  }
}

TEST(WorstExamplesTest, OfEqualOnesTheFirstRecords) {
  WorstExamples worst;
  for (int64_t record = 49; record >= 0; --record) worst.Add(Bad(record, 1), {});
  ASSERT_THAT(worst.worst(), SizeIs(WorstExamples::kExamples));
  for (size_t i = 0; i < WorstExamples::kExamples; ++i) {
    EXPECT_EQ(worst.worst()[i].record, static_cast<int64_t>(i));
  }
}

TEST(WorstExamplesTest, InputsAreBytes) {
  WorstExamples worst;
  worst.Add(Bad(0, 1), {0, 1, 0.5f, -3, 7, NAN});
  EXPECT_THAT(worst.worst()[0].input, ElementsAre(0, 255, 128, 0, 255, 0));
  const std::vector<float> most(WorstExamples::kMaxInputBytes);
  worst.Add(Bad(1, 2), most);
  EXPECT_THAT(worst.worst()[0].input, SizeIs(WorstExamples::kMaxInputBytes));
  const std::vector<float> more(WorstExamples::kMaxInputBytes + 1);
  worst.Add(Bad(2, 3), more);
  EXPECT_THAT(worst.worst()[0].input, IsEmpty());
}

}  // namespace
}  // namespace keelson
