#include "core/device/cpu/rowwise.h"

#include <algorithm>
#include <cstddef>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/device/cpu/rowwise.cc"
#include "hwy/foreach_target.h"
#include "core/wire/element_vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

void ScaleRowsOnTarget(int64_t rows, int64_t columns, const float* factors, float* x) {
  for (int64_t row = 0; row < rows; ++row) {
    const float factor = factors[row];
    float* const values = x + row * columns;
    ForEachVector(static_cast<size_t>(columns), [=](auto d, size_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, factor)), d, values + i);
    });
  }
}

void AddRowVectorOnTarget(int64_t rows, int64_t columns, float alpha, const float* v, float* x) {
  for (int64_t row = 0; row < rows; ++row) {
    float* const values = x + row * columns;
    ForEachVector(static_cast<size_t>(columns), [=](auto d, size_t i) HWY_ATTR {
      const auto sum = hn::MulAdd(hn::LoadU(d, v + i), hn::Set(d, alpha), hn::LoadU(d, values + i));
      hn::StoreU(sum, d, values + i);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(ScaleRowsOnTarget);
HWY_EXPORT(AddRowVectorOnTarget);

// Calls f(first, count) for all rows, blocks of which the threads share.
template <typename F>
void ForEachBlockOfRows(int64_t rows, int64_t columns, F f) {
  // Below this many elements waking threads costs more than they save.
  constexpr int64_t kMinParallelElements = 1 << 17;
  constexpr int64_t kBlockElements = 1 << 14;
  if (rows * columns < kMinParallelElements) return f(0, rows);
  const int64_t size = std::max<int64_t>(1, kBlockElements / columns);
  const int64_t blocks = (rows + size - 1) / size;
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = block * size;
    f(first, std::min(size, rows - first));
  }
}

}  // namespace

void ScaleEachRow(int64_t rows, int64_t columns, const float* factors, float* x) {
  ForEachBlockOfRows(rows, columns, [=](int64_t first, int64_t count) {
    HWY_DYNAMIC_DISPATCH(ScaleRowsOnTarget)(count, columns, factors + first, x + first * columns);
  });
}

void AddToEachRow(int64_t rows, int64_t columns, float alpha, const float* v, float* x) {
  ForEachBlockOfRows(rows, columns, [=](int64_t first, int64_t count) {
    HWY_DYNAMIC_DISPATCH(AddRowVectorOnTarget)(count, columns, alpha, v, x + first * columns);
  });
}

}  // namespace keelson
#endif  // HWY_ONCE
