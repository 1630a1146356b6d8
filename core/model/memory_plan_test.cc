#include "core/model/memory_plan.h"

#include <vector>

#include "core/base/random.h"
#include "core/device/memory_view.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

// Fails the test where two values overlap that exist at the same time.
void ExpectValid(const std::vector<Lifetime>& values, const MemoryPlan& plan) {
  ASSERT_EQ(plan.begin.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t end = plan.begin[i] + values[i].floats;
    EXPECT_GE(plan.begin[i], 0);
    EXPECT_EQ(plan.begin[i] % MemoryView::kAlignedFloats, 0);
    EXPECT_LE(end, plan.floats);
    for (size_t j = 0; j < i; ++j) {
      if (values[i].last < values[j].first || values[j].last < values[i].first) continue;
      EXPECT_TRUE(end <= plan.begin[j] || plan.begin[j] + values[j].floats <= plan.begin[i])
          << i << " and " << j;
    }
  }
}

TEST(MemoryPlanTest, ValuesOneAfterTheOtherShareMemory) {
  const std::vector<Lifetime> values = {{64, 0, 1}, {192, 2, 3}, {128, 4, 4}};
  const MemoryPlan plan = PlanMemory(values);
  ExpectValid(values, plan);
  EXPECT_EQ(plan.floats, 192);
  EXPECT_EQ(LeastFloats(values), 192);
}

TEST(MemoryPlanTest, ValuesAtOneMomentDoNot) {
  const std::vector<Lifetime> values = {{64, 0, 2}, {192, 2, 3}, {128, 3, 4}};
  const MemoryPlan plan = PlanMemory(values);
  ExpectValid(values, plan);
  EXPECT_EQ(plan.floats, 320);
  EXPECT_EQ(LeastFloats(values), 320);
}

TEST(MemoryPlanTest, OfNoValuesIsEmpty) {
  EXPECT_EQ(PlanMemory({}).floats, 0);
  EXPECT_EQ(LeastFloats({}), 0);
}

TEST(MemoryPlanTest, IsValidForRandomLifetimes) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<Lifetime> values(1 + Philox(seed, 1, 0)[0] % 40);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto random = Philox(seed, 2, i);
      const int first = static_cast<int>(random[0] % 30);
      values[i] = {random[1] % 1000, first, first + static_cast<int>(random[2] % 10)};
    }
    const MemoryPlan plan = PlanMemory(values);
    ExpectValid(values, plan);
    EXPECT_GE(plan.floats, LeastFloats(values));
  }
}

}  // namespace
}  // namespace keelson
