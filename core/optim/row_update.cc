#include "core/optim/row_update.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <variant>

#include "core/tensor/table_spec.h"

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optim/row_update.cc"
#include "hwy/foreach_target.h"
#include "core/optim/gradient_format-inl.h"
#include "core/optim/rules-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kMostDim = TableSpec::kMostDim;
// So many rows ahead a row's cache lines are fetched, at most so many bytes of it; the processor
// itself sees that a longer one goes on.
constexpr size_t kRowsAhead = 6;
constexpr size_t kMostPrefetched = 1024;
constexpr size_t kCacheLine = 64;

// Calls body(d, i) for the elements from i on, for each vector of n elements: full vectors, then of
// 8, 4 and 1 lanes. Most rows are short.
template <class Body>
HWY_INLINE void ForEachPiece(size_t n, Body body) {
  const hn::ScalableTag<float> d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) body(d, i);
  if constexpr (hn::MaxLanes(d) > 8) {
    const hn::CappedTag<float, 8> part;
    for (; i + hn::Lanes(part) <= n; i += hn::Lanes(part)) body(part, i);
  }
  if constexpr (hn::MaxLanes(d) > 4) {
    const hn::CappedTag<float, 4> part;
    for (; i + hn::Lanes(part) <= n; i += hn::Lanes(part)) body(part, i);
  }
  for (; i < n; ++i) body(hn::CappedTag<float, 1>(), i);
}

enum Intent { kRead, kWrite };

template <Intent kIntent>
HWY_INLINE void Prefetch(const float* row, size_t bytes) {
  if (row == nullptr) return;
  const char* const first = reinterpret_cast<const char*>(row);
  for (size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(first + at, kIntent);
  __builtin_prefetch(first + bytes - 1, kIntent);  // a row may begin within a line
}

// A row's gradient, ready for LoadElements.
struct Gradient {
  const uint8_t* data;
  float scale;
};

template <WireFormat kFormat>
HWY_INLINE Gradient GradientOf(const RowGradients& gradients, size_t row) {
  const uint8_t* const data = gradients.data + row * gradients.stride;
  if constexpr (kFormat == WireFormat::kInt8) {
    float scale;
    std::memcpy(&scale, data, sizeof(scale));
    return {data + sizeof(scale), scale};
  } else {
    return {data, 1};
  }
}

template <WireFormat kFormat, class Step>
HWY_INLINE void UpdateRow(const Step& step, ElementTransform transform, Gradient gradient,
                          size_t dim, float* row) {
  float* const first = row + dim;
  float* const second = row + 2 * dim;
  ForEachPiece(dim, [=](auto d, size_t i) HWY_ATTR {
    auto value = hn::LoadU(d, row + i);
    auto a = hn::Zero(d), b = hn::Zero(d);
    if constexpr (Step::kSlots > 0) a = hn::LoadU(d, first + i);
    if constexpr (Step::kSlots > 1) b = hn::LoadU(d, second + i);
    const auto g =
        Transform(d, transform, LoadElements<kFormat>(d, gradient.data, i, gradient.scale), value);
    value = hn::Mul(hn::Set(d, transform.keep), value);
    Apply(d, step, g, value, a, b);
    hn::StoreU(value, d, row + i);
    if constexpr (Step::kSlots > 0) hn::StoreU(a, d, first + i);
    if constexpr (Step::kSlots > 1) hn::StoreU(b, d, second + i);
  });
}

// Elements i, i + 16, i + 32, ... are summed up in 16 lanes, and those by halves: so the bits do
// not depend on how wide the vectors are. `x` has zeros up to a multiple of 16.
HWY_INLINE float SumOfSquares(const float* x, size_t n) {
  constexpr size_t kLanes = 16;
  const hn::CappedTag<float, kLanes> d;
  alignas(64) float sums[kLanes] = {};
  for (size_t i = 0; i < n; i += kLanes) {
    for (size_t k = 0; k < kLanes; k += hn::Lanes(d)) {
      const auto v = hn::LoadU(d, x + i + k);
      hn::StoreU(hn::Add(hn::LoadU(d, sums + k), hn::Mul(v, v)), d, sums + k);
    }
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0];
}

template <WireFormat kFormat>
HWY_INLINE void UpdateRow(const RowWiseAdagradRule::Step& step, ElementTransform transform,
                          Gradient gradient, size_t dim, float* row) {
  alignas(64) float transformed[kMostDim];
  std::fill(transformed + dim / 16 * 16, transformed + (dim + 15) / 16 * 16, 0.0f);
  ForEachPiece(dim, [=, &transformed](auto d, size_t i) HWY_ATTR {
    const auto encoded = LoadElements<kFormat>(d, gradient.data, i, gradient.scale);
    hn::StoreU(Transform(d, transform, encoded, hn::LoadU(d, row + i)), d, transformed + i);
  });
  float& accumulator = row[dim];
  accumulator += SumOfSquares(transformed, dim) / static_cast<float>(dim);
  const float rate = step.rate / (std::sqrt(accumulator) + step.epsilon);
  ForEachPiece(dim, [=, &transformed](auto d, size_t i) HWY_ATTR {
    const auto value = hn::Mul(hn::Set(d, transform.keep), hn::LoadU(d, row + i));
    hn::StoreU(hn::Sub(value, hn::Mul(hn::Set(d, rate), hn::LoadU(d, transformed + i))), d,
               row + i);
  });
}

template <class D, class V>
HWY_INLINE V MovedBy(D d, const RowCatchUp& missed, float epsilon, V value, V m, V v) {
  const V divisor = Add(Sqrt(v), Set(d, epsilon));
  return Mul(Sub(value, Div(Mul(Set(d, missed.movement), m), divisor)), Set(d, missed.keep));
}

// Writes the values of `row` after the missed steps to `values`, which may be the row's own.
void ReadRow(const RowCatchUp& missed, const RowCatchUps& how, size_t dim, const float* row,
             float* values) {
  if (!how.has_moments) {
    ForEachPiece(dim, [=, &missed](auto d, size_t i) HWY_ATTR {
      hn::StoreU(Mul(hn::LoadU(d, row + i), Set(d, missed.keep)), d, values + i);
    });
    return;
  }
  ForEachPiece(dim, [=, &missed, &how](auto d, size_t i) HWY_ATTR {
    const auto m = hn::LoadU(d, row + dim + i), v = hn::LoadU(d, row + 2 * dim + i);
    hn::StoreU(MovedBy(d, missed, how.epsilon, hn::LoadU(d, row + i), m, v), d, values + i);
  });
}

void CatchUpRow(const RowCatchUp& missed, const RowCatchUps& how, size_t dim, float* row) {
  ReadRow(missed, how, dim, row, row);
  if (!how.has_moments) return;
  ForEachPiece(dim, [=, &missed](auto d, size_t i) HWY_ATTR {
    float* const m = row + dim + i;
    float* const v = row + 2 * dim + i;
    hn::StoreU(Mul(hn::LoadU(d, m), Set(d, missed.m)), d, m);
    hn::StoreU(Mul(hn::LoadU(d, v), Set(d, missed.v)), d, v);
  });
}

template <class Step>
size_t RowFloats(const Step&, size_t dim) {
  return dim * (1 + static_cast<size_t>(Step::kSlots));
}
size_t RowFloats(const RowWiseAdagradRule::Step&, size_t dim) { return dim + 1; }

void SetRate(AdamRule::Step* step, float rate) { step->rate = rate; }
template <class Step>
void SetRate(Step*, float) {}

template <WireFormat kFormat, class Step>
void UpdateInFormat(Step step, const RowUpdateArgs& args) {
  const size_t bytes = std::min(RowFloats(step, args.dim) * sizeof(float), kMostPrefetched);
  const size_t n = args.rows.size();
  for (size_t i = 0; i < std::min(kRowsAhead, n); ++i) Prefetch<kWrite>(args.rows[i], bytes);
  for (size_t i = 0; i < n; ++i) {
    if (i + kRowsAhead < n) Prefetch<kWrite>(args.rows[i + kRowsAhead], bytes);
    float* const row = args.rows[i];
    if (row == nullptr) continue;
    if (!args.catch_ups.rows.empty() && args.catch_ups.rows[i].any) {
      CatchUpRow(args.catch_ups.rows[i], args.catch_ups, args.dim, row);
    }
    if (!args.rates.empty()) SetRate(&step, args.rates[i]);
    UpdateRow<kFormat>(step, args.transform, GradientOf<kFormat>(args.gradients, i), args.dim, row);
  }
}

void UpdateRowsByRule(const RowUpdateArgs& args) {
  std::visit(
      [&](const auto& step) {
        ForFormat(args.gradients.format,
                  [&]<WireFormat kFormat>() HWY_ATTR { UpdateInFormat<kFormat>(step, args); });
      },
      args.step);
}

void ReadRowsOfBatch(const RowReadArgs& args) {
  const size_t floats = args.dim * (args.catch_ups.has_moments ? 3 : 1);
  const size_t bytes = std::min(floats * sizeof(float), kMostPrefetched);
  const size_t n = args.rows.size();
  for (size_t i = 0; i < n; ++i) {
    if (i + kRowsAhead < n) Prefetch<kRead>(args.rows[i + kRowsAhead], bytes);
    if (args.rows[i] == nullptr) continue;
    float* const values = args.values + i * args.stride;
    if (!args.catch_ups.rows.empty() && args.catch_ups.rows[i].any) {
      ReadRow(args.catch_ups.rows[i], args.catch_ups, args.dim, args.rows[i], values);
    } else {
      std::copy_n(args.rows[i], args.dim, values);
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

HWY_EXPORT(UpdateRowsByRule);
HWY_EXPORT(ReadRowsOfBatch);

}  // namespace

void UpdateRows(const RowUpdateArgs& args) { HWY_DYNAMIC_DISPATCH(UpdateRowsByRule)(args); }

void ReadRows(const RowReadArgs& args) { HWY_DYNAMIC_DISPATCH(ReadRowsOfBatch)(args); }

}  // namespace keelson
#endif  // HWY_ONCE
