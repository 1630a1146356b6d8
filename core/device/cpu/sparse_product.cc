#include "core/device/cpu/sparse_product.h"

#include <omp.h>

#include <cstddef>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/device/cpu/sparse_product.cc"
#include "hwy/foreach_target.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Entries between the one whose row of x is fetched into the cache and the one that is added.
constexpr int64_t kAhead = 16;
constexpr size_t kFloatsPerCacheLine = 16;

// Entries [begin, end) of a row, after which the same thread sums those up to `last`.
struct Entries {
  const int32_t* columns;
  const float* coefficients;
  int64_t begin;
  int64_t end;
  int64_t last;
};

// The vector plus beta times what is at y, unless beta is 0.
template <class D, class V>
HWY_INLINE void Put(D d, V sum, float beta, float* y) {
  if (beta != 0) sum = hn::MulAdd(hn::Set(d, beta), hn::LoadU(d, y), sum);
  hn::StoreU(sum, d, y);
}

// y = beta * y + sum of coefficient * row of x over the entries, for kVectors vectors of columns,
// at which x and y point.
template <int kVectors, class D>
HWY_INLINE void SumEntries(D d, const Entries& entries, int64_t width, const float* x, float beta,
                           float* y) {
  const size_t lanes = hn::Lanes(d), block = kVectors * lanes;
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  for (int64_t i = entries.begin; i < entries.end; ++i) {
    if (i + kAhead < entries.last) {
      const float* const ahead = x + entries.columns[i + kAhead] * width;
      for (size_t k = 0; k < block; k += kFloatsPerCacheLine) hwy::Prefetch(ahead + k);
      hwy::Prefetch(ahead + block - 1);
    }
    const float* const from = x + entries.columns[i] * width;
    const auto coefficient = hn::Set(d, entries.coefficients[i]);
    sum0 = hn::MulAdd(coefficient, hn::LoadU(d, from), sum0);
    if constexpr (kVectors > 1) {
      sum1 = hn::MulAdd(coefficient, hn::LoadU(d, from + lanes), sum1);
    }
    if constexpr (kVectors > 2) {
      sum2 = hn::MulAdd(coefficient, hn::LoadU(d, from + 2 * lanes), sum2);
      sum3 = hn::MulAdd(coefficient, hn::LoadU(d, from + 3 * lanes), sum3);
    }
  }
  Put(d, sum0, beta, y);
  if constexpr (kVectors > 1) Put(d, sum1, beta, y + lanes);
  if constexpr (kVectors > 2) {
    Put(d, sum2, beta, y + 2 * lanes);
    Put(d, sum3, beta, y + 3 * lanes);
  }
}

// All columns of a row, of at least one vector. Where y is not read the last vector may overlap the
// one before it; otherwise columns that fill no vector are summed one by one.
template <class D>
HWY_INLINE void SumRow(D d, const Entries& entries, int64_t width, const float* x, float beta,
                       float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {
    SumEntries<4>(d, entries, width, x + i, beta, y + i);
  }
  if (i + 2 * lanes <= width) {
    SumEntries<2>(d, entries, width, x + i, beta, y + i);
    i += 2 * lanes;
  }
  if (i + lanes <= width) {
    SumEntries<1>(d, entries, width, x + i, beta, y + i);
    i += lanes;
  }
  if (i == width) return;
  if (beta == 0) {
    return SumEntries<1>(d, entries, width, x + width - lanes, beta, y + width - lanes);
  }
  const hn::CappedTag<float, 1> one;
  for (; i < width; ++i) SumEntries<1>(one, entries, width, x + i, beta, y + i);
}

template <class D>
HWY_INLINE void SumRows(D d, int64_t first, int64_t end, const HostSparseRows& a, int64_t width,
                        const float* x, float beta, float* y) {
  Entries entries{a.columns, a.coefficients, 0, 0, a.offsets[end]};
  for (int64_t k = first; k < end; ++k) {
    entries.begin = a.offsets[k];
    entries.end = a.offsets[k + 1];
    SumRow(d, entries, width, x, beta, y + a.rows[k] * width);
  }
}

// Stored rows [first, end), with the widest vectors that a row fills.
void SumRowsOnTarget(int64_t first, int64_t end, const HostSparseRows& a, int64_t width,
                     const float* x, float beta, float* y) {
  const hn::ScalableTag<float> widest;
  if (width >= static_cast<int64_t>(hn::Lanes(widest))) {
    SumRows(widest, first, end, a, width, x, beta, y);
  } else if (width >= 8) {
    SumRows(hn::CappedTag<float, 8>(), first, end, a, width, x, beta, y);
  } else if (width >= 4) {
    SumRows(hn::CappedTag<float, 4>(), first, end, a, width, x, beta, y);
  } else {
    SumRows(hn::CappedTag<float, 1>(), first, end, a, width, x, beta, y);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(SumRowsOnTarget);

// What stored rows [0, k) cost: a row costs about as much as an entry.
int64_t CostBefore(const HostSparseRows& a, int64_t k) { return k + a.offsets[k]; }

// The first stored row before which the rows cost at least `cost`.
int64_t RowAtCost(const HostSparseRows& a, int64_t cost) {
  int64_t low = 0, high = a.stored;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (CostBefore(a, middle) < cost) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

void MultiplySparseRows(const HostSparseRows& a, int64_t width, const float* x, float beta,
                        float* y) {
  if (a.stored == 0 || width == 0) return;
  // Below this many products waking threads costs more than they save.
  constexpr int64_t kMinParallelProducts = 1 << 16;
  // Parts for each thread, so that one whose rows are in the cache takes more of them.
  constexpr int64_t kPartsPerThread = 8;
  const int64_t cost = CostBefore(a, a.stored);
  const int64_t parts =
      cost * width < kMinParallelProducts ? 1 : kPartsPerThread * omp_get_max_threads();
#pragma omp parallel for schedule(dynamic) if (parts > 1)
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = RowAtCost(a, cost * part / parts);
    const int64_t end = RowAtCost(a, cost * (part + 1) / parts);
    HWY_DYNAMIC_DISPATCH(SumRowsOnTarget)(first, end, a, width, x, beta, y);
  }
}

}  // namespace keelson
#endif  // HWY_ONCE
