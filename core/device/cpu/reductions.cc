#include "core/device/cpu/reductions.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace keelson {
namespace {

// The number of elements that one thread sums at a time. For fewer, waking threads costs more than
// they save.
constexpr int64_t kBlock = 1 << 16;

template <typename F>
double SumOfBlock(int64_t n, const float* x, F term) {
  // The number of sums that are added side by side, so that additions do not wait for each other.
  constexpr int64_t kSums = 16;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
#pragma omp simd
    for (int64_t k = 0; k < kSums; ++k) sums[k] += term(double{x[i + k]});
  }
  for (; i < n; ++i) sums[0] += term(double{x[i]});
  return std::accumulate(sums, sums + kSums, 0.0);
}

template <typename F>
double SumOfTerms(int64_t n, const float* x, F term) {
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> sums(blocks);
#pragma omp parallel for schedule(static) if (blocks > 1)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = block * kBlock;
    sums[block] = SumOfBlock(std::min(kBlock, n - first), x + first, term);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

double SumOf(int64_t n, const float* x) {
  return SumOfTerms(n, x, [](double value) { return value; });
}

double SumOfSquares(int64_t n, const float* x) {
  return SumOfTerms(n, x, [](double value) { return value * value; });
}

}  // namespace keelson
