#include "core/device/cuda/kernels/divisor.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/base/random.h"

namespace keelson::cuda {
namespace {

constexpr int32_t kLargest = std::numeric_limits<int32_t>::max();

// Small numbers, those around powers of two, and the largest.
std::vector<int32_t> Numbers() {
  std::vector<int32_t> numbers = {1, 2, 3, 5, 6, 7, 9, 10, 25, 28, 75, 641, 784, 1000, 6700417};
  for (int bit = 2; bit < 31; ++bit) {
    for (int32_t offset : {-1, 0, 1}) numbers.push_back((int32_t{1} << bit) + offset);
  }
  for (int32_t offset : {0, 1, 2}) numbers.push_back(kLargest - offset);
  return numbers;
}

TEST(DivisorTest, DividesAsTheProcessorDoes) {
  for (int32_t value : Numbers()) {
    const Divisor<int32_t> divisor(value);
    EXPECT_EQ(divisor.value(), value);
    const auto expect = [&](int32_t n) {
      const auto division = DivideBy(divisor, n);
      ASSERT_EQ(division.quotient, n / value) << n << " / " << value;
      ASSERT_EQ(division.remainder, n % value) << n << " % " << value;
    };
    expect(0);
    for (int32_t n : Numbers()) {
      expect(n);
      // The numbers before and at multiples are the ones that an inexact multiplier gets wrong.
      const int32_t multiple = n / value * value;
      expect(multiple);
      if (multiple > 0) expect(multiple - 1);
    }
    for (uint64_t i = 0; i < 1000; ++i) {
      expect(static_cast<int32_t>(Philox(1, static_cast<uint64_t>(value), i)[0] >> 1));
    }
  }
}

TEST(DivisorTest, DividesLongNumbers) {
  const Divisor<int64_t> divisor(int64_t{3} << 33);
  const auto division = DivideBy(divisor, (int64_t{7} << 34) + 5);
  EXPECT_EQ(division.quotient, 4);
  EXPECT_EQ(division.remainder, (int64_t{2} << 33) + 5);
}

}  // namespace
}  // namespace keelson::cuda
