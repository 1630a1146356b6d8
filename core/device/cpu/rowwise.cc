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

// Sums as many products at once as a vector has lanes, then those sums, then the rest in turn.
HWY_INLINE float DotOnTarget(int64_t n, const float* a, const float* b) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    sums = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sums);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void DotRowsOnTarget(int64_t rows, int64_t columns, float alpha, const float* a, const float* b,
                     float beta, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const float dot = alpha * DotOnTarget(columns, a + row * columns, b + row * columns);
    y[row] = beta == 0 ? dot : dot + beta * y[row];
  }
}

void AddScaledRowsOnTarget(int64_t rows, int64_t columns, float alpha, const float* factors,
                           const float* x, float beta, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const float factor = alpha * factors[row];
    const float* const from = x + row * columns;
    float* const to = y + row * columns;
    if (beta == 0) {
      ForEachVector(static_cast<size_t>(columns), [=](auto d, size_t i) HWY_ATTR {
        hn::StoreU(hn::Mul(hn::LoadU(d, from + i), hn::Set(d, factor)), d, to + i);
      });
      continue;
    }
    ForEachVector(static_cast<size_t>(columns), [=](auto d, size_t i) HWY_ATTR {
      const auto kept = hn::Mul(hn::LoadU(d, to + i), hn::Set(d, beta));
      hn::StoreU(hn::MulAdd(hn::LoadU(d, from + i), hn::Set(d, factor), kept), d, to + i);
    });
  }
}

void DotPairsOnTarget(const PairGeometry& geometry, int64_t rows, const float* x, float* y) {
  for (int64_t row = 0; row < rows; ++row, x += geometry.vectors * geometry.dim) {
    for (int64_t i = 0; i < geometry.vectors; ++i) {
      for (int64_t j = geometry.diagonal ? i : i + 1; j < geometry.vectors; ++j) {
        *y++ = DotOnTarget(geometry.dim, x + i * geometry.dim, x + j * geometry.dim);
      }
    }
  }
}

// to += factor * from
HWY_INLINE void AddScaledOnTarget(int64_t n, float factor, const float* from, float* to) {
  ForEachVector(static_cast<size_t>(n), [=](auto d, size_t i) HWY_ATTR {
    const auto sum = hn::MulAdd(hn::LoadU(d, from + i), hn::Set(d, factor), hn::LoadU(d, to + i));
    hn::StoreU(sum, d, to + i);
  });
}

void DotPairsBackwardOnTarget(const PairGeometry& geometry, int64_t rows, const float* x,
                              const float* dy, float* dx) {
  const int64_t dim = geometry.dim, size = geometry.vectors * dim;
  for (int64_t row = 0; row < rows; ++row, x += size, dx += size) {
    std::fill(dx, dx + size, 0.0f);
    for (int64_t i = 0; i < geometry.vectors; ++i) {
      for (int64_t j = geometry.diagonal ? i : i + 1; j < geometry.vectors; ++j) {
        const float gradient = *dy++;
        AddScaledOnTarget(dim, gradient, x + j * dim, dx + i * dim);
        AddScaledOnTarget(dim, gradient, x + i * dim, dx + j * dim);
      }
    }
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
HWY_EXPORT(DotRowsOnTarget);
HWY_EXPORT(AddScaledRowsOnTarget);
HWY_EXPORT(DotPairsOnTarget);
HWY_EXPORT(DotPairsBackwardOnTarget);

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

void DotEachRow(int64_t rows, int64_t columns, float alpha, const float* a, const float* b,
                float beta, float* y) {
  ForEachBlockOfRows(rows, columns, [=](int64_t first, int64_t count) {
    const int64_t begin = first * columns;
    HWY_DYNAMIC_DISPATCH(DotRowsOnTarget)
    (count, columns, alpha, a + begin, b + begin, beta, y + first);
  });
}

void AddEachRowScaled(int64_t rows, int64_t columns, float alpha, const float* factors,
                      const float* x, float beta, float* y) {
  ForEachBlockOfRows(rows, columns, [=](int64_t first, int64_t count) {
    const int64_t begin = first * columns;
    HWY_DYNAMIC_DISPATCH(AddScaledRowsOnTarget)
    (count, columns, alpha, factors + first, x + begin, beta, y + begin);
  });
}

void DotPairs(const PairGeometry& geometry, const float* x, float* y) {
  const int64_t size = geometry.vectors * geometry.dim, pairs = geometry.pairs();
  ForEachBlockOfRows(geometry.rows, pairs * geometry.dim, [=](int64_t first, int64_t count) {
    HWY_DYNAMIC_DISPATCH(DotPairsOnTarget)(geometry, count, x + first * size, y + first * pairs);
  });
}

void DotPairsBackward(const PairGeometry& geometry, const float* x, const float* dy, float* dx) {
  const int64_t size = geometry.vectors * geometry.dim, pairs = geometry.pairs();
  ForEachBlockOfRows(geometry.rows, pairs * geometry.dim, [=](int64_t first, int64_t count) {
    HWY_DYNAMIC_DISPATCH(DotPairsBackwardOnTarget)
    (geometry, count, x + first * size, dy + first * pairs, dx + first * size);
  });
}

}  // namespace keelson
#endif  // HWY_ONCE
