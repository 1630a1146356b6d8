#include "core/table/uniform_row.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/random.h"

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/table/uniform_row.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void Fill(uint64_t key, uint64_t stream, float low, float range, float* out, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    out[i] = low + range * UniformFloat(Philox(key, stream, i / 4)[i % 4]);
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<uint64_t>;  // a word of 32 bits in each lane, the upper half 0
using Vector = hn::Vec<Words>;

HWY_INLINE Vector Product(Vector a, Vector b) {
  const hn::Repartition<uint32_t, Words> halves;
  return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, b));
}

// Philox of as many counters as a vector has lanes, from `counter` on (core/base/random.h).
HWY_INLINE void PhiloxWords(uint64_t key, uint64_t stream, uint64_t counter, Vector* x) {
  const Words d;
  const Vector low = hn::Set(d, 0xffffffff);
  const Vector multiplier0 = hn::Set(d, 0xD2511F53), multiplier1 = hn::Set(d, 0xCD9E8D57);
  x[0] = hn::Iota(d, counter);
  x[1] = hn::Zero(d);
  x[2] = hn::Set(d, stream & 0xffffffff);
  x[3] = hn::Set(d, stream >> 32);
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Vector product0 = Product(x[0], multiplier0), product1 = Product(x[2], multiplier1);
    x[0] = hn::Xor(hn::ShiftRight<32>(product1), hn::Xor(x[1], hn::Set(d, key0)));
    x[1] = hn::And(product1, low);
    x[2] = hn::Xor(hn::ShiftRight<32>(product0), hn::Xor(x[3], hn::Set(d, key1)));
    x[3] = hn::And(product0, low);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

// The floats of two words, that of `first` in the lower half of each lane.
HWY_INLINE Vector Floats(Vector first, Vector second, float low, float range) {
  const hn::Repartition<float, Words> floats;
  const hn::RebindToSigned<decltype(floats)> integers;
  const Vector bits =
      hn::Or(hn::ShiftRight<8>(first), hn::ShiftLeft<32>(hn::ShiftRight<8>(second)));
  const auto uniform =
      hn::Mul(hn::ConvertTo(floats, hn::BitCast(integers, bits)), hn::Set(floats, 0x1p-24f));
  const auto values = hn::Add(hn::Set(floats, low), hn::Mul(hn::Set(floats, range), uniform));
  return hn::BitCast(Words(), values);
}

void Fill(uint64_t key, uint64_t stream, float low, float range, float* out, size_t size) {
  const Words d;
  const size_t step = 4 * hn::Lanes(d);
  HWY_ALIGN uint64_t elements[2 * hn::MaxLanes(d)];
  for (size_t first = 0; first < size; first += step) {
    Vector x[4];
    PhiloxWords(key, stream, first / 4, x);
    hn::StoreInterleaved2(Floats(x[0], x[1], low, range), Floats(x[2], x[3], low, range), d,
                          elements);
    std::copy_n(reinterpret_cast<const float*>(elements), std::min(step, size - first),
                out + first);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace keelson {
HWY_EXPORT(Fill);

void FillUniform(uint64_t key, uint64_t stream, float low, float range, absl::Span<float> out) {
  HWY_DYNAMIC_DISPATCH(Fill)(key, stream, low, range, out.data(), out.size());
}

}  // namespace keelson

#endif  // HWY_ONCE
