#include "core/base/thread_pool.h"

#include <atomic>

#include "gtest/gtest.h"

namespace keelson {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEachPartOnceAndWaitsForAll) {
  ThreadPool pool(GetParam());
  for (const int count : {0, 1, 2, 17}) {
    std::vector<int> calls(count, 0);
    pool.RunAll(count, [&calls](size_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(count, 1));
  }
}

TEST_P(ThreadPoolTest, CanBeUsedManyTimes) {
  ThreadPool pool(GetParam());
  std::atomic<int> sum{0};
  for (int round = 0; round < 200; ++round) pool.RunAll(3, [&sum](size_t i) { sum += i; });
  EXPECT_EQ(sum, 600);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(0, 1, 4));

}  // namespace
}  // namespace keelson
