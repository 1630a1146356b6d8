#include "bench/chief/load.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

using ::testing::ElementsAre;

TEST(LoadTest, EachStreamMakesAsManyCallsAsAreDue) {
  std::vector<int64_t> slow;
  std::vector<int64_t> fast;
  Load load({{1, [&](int64_t number) { slow.push_back(number); }},
             {2.5, [&](int64_t number) { fast.push_back(number); }}});
  load.MakeDue(0.9);
  EXPECT_THAT(slow, ElementsAre());
  EXPECT_THAT(fast, ElementsAre(0, 1));
  load.MakeDue(2);
  EXPECT_THAT(slow, ElementsAre(0, 1));
  EXPECT_THAT(fast, ElementsAre(0, 1, 2, 3, 4));
}

TEST(LoadTest, CallsThatAreLateAreMade) {
  int calls = 0;
  Load load({{1000, [&](int64_t) { ++calls; }}});
  load.MakeDue(0.001);
  load.MakeDue(1);
  EXPECT_EQ(calls, 1000);
}

TEST(LoadTest, ALaterRunGoesOnWithTheNumbers) {
  std::vector<int64_t> numbers;
  Load load({{1000, [&](int64_t number) { numbers.push_back(number); }}});
  load.Run(0.002);
  load.Run(0.002);
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace keelson::bench
