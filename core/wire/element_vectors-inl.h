// Elements of a wire format to and from vectors of float32, for SIMD code that is compiled once per
// instruction set (Highway's foreach_target.h). Byte pointers need no alignment. All instruction
// sets give the same bits, whatever the number of lanes.

// Highway's include guard: once per instruction set.
#if defined(KEELSON_CORE_WIRE_ELEMENT_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEELSON_CORE_WIRE_ELEMENT_VECTORS_INL_H_
#undef KEELSON_CORE_WIRE_ELEMENT_VECTORS_INL_H_
#else
#define KEELSON_CORE_WIRE_ELEMENT_VECTORS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/wire/wire_format.h"
#include "hwy/highway.h"

// Whether the instruction set lacks conversions of float16 (or Highway's are not exact: that of
// SSE2, a target from 1.1 on, makes 65536 of infinity).
#undef KEELSON_CONVERTS_HALF_BY_INTEGERS
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSE2 || \
    HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
#define KEELSON_CONVERTS_HALF_BY_INTEGERS 1
#else
#define KEELSON_CONVERTS_HALF_BY_INTEGERS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls body(d, i) for elements i, i + 1, ... of n, as many as float32 vectors of the tag d have
// lanes: full vectors, then single lanes.
template <class Body>
HWY_INLINE void ForEachVector(size_t n, Body body) {
  const hn::ScalableTag<float> d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) body(d, i);
  for (; i < n; ++i) body(hn::CappedTag<float, 1>(), i);
}

template <class D>
HWY_INLINE hn::Vec<D> LoadBytes(D d, const uint8_t* from) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    hn::TFromD<D> x;
    std::memcpy(&x, from, sizeof(x));
    return hn::Set(d, x);
  } else {
    return hn::BitCast(d, hn::LoadU(hn::Repartition<uint8_t, D>(), from));
  }
}

template <class D>
HWY_INLINE void StoreBytes(D d, hn::Vec<D> v, uint8_t* to) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    const hn::TFromD<D> x = hn::GetLane(v);
    std::memcpy(to, &x, sizeof(x));
  } else {
    const hn::Repartition<uint8_t, D> bytes;
    hn::StoreU(hn::BitCast(bytes, v), bytes, to);
  }
}

#if KEELSON_CONVERTS_HALF_BY_INTEGERS

template <class D>
HWY_INLINE hn::Vec<D> FromHalf(D d, hn::Vec<hn::Rebind<uint16_t, D>> half) {
  const hn::RebindToUnsigned<D> du;
  constexpr uint32_t kExponentShift = 112u << 23;  // the difference of the exponents' biases
  const auto bits = hn::PromoteTo(du, half);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
  const auto normal = hn::Add(magnitude, hn::Set(du, kExponentShift));
  const auto quiet = hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(du, 0x7c00u << 13)),
                                        hn::Set(du, uint32_t{1} << 22));
  const auto special = hn::Or(hn::Or(magnitude, hn::Set(du, 0x7f800000u)), quiet);
  // A subnormal m * 2^-24 is (2^-14 + m * 2^-24) - 2^-14.
  const auto smallest_normal = hn::Set(du, kExponentShift + (1u << 23));
  const auto subnormal =
      hn::BitCast(du, hn::Sub(hn::BitCast(d, hn::Add(magnitude, smallest_normal)),
                              hn::BitCast(d, smallest_normal)));
  const auto not_subnormal =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x7c00u << 13)), normal, special);
  const auto result =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x0400u << 13)), subnormal, not_subnormal);
  return hn::BitCast(d, hn::Or(result, sign));
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> ToHalf(D d, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const auto sign = hn::ShiftRight<16>(hn::And(bits, hn::Set(du, 0x80000000u)));
  // Half of the last place, less one when that is even; a carry goes into the exponent.
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
  const auto rounded = hn::Add(hn::Add(magnitude, hn::Set(du, 0xfffu)), odd);
  const auto normal = hn::ShiftRight<13>(hn::Sub(rounded, hn::Set(du, 112u << 23)));
  // The last place of 0.5 is 2^-24, that of a subnormal, and the addition rounds.
  const auto half = hn::Set(d, 0.5f);
  const auto subnormal =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(du, half));
  const auto nan =
      hn::Or(hn::Set(du, 0x7e00u), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3ffu)));
  const auto special =
      hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000u)), nan, hn::Set(du, 0x7c00u));
  const auto not_subnormal =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, (127u + 16u) << 23)), normal, special);
  const auto result =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, (127u - 14u) << 23)), subnormal, not_subnormal);
  return hn::TruncateTo(hn::Rebind<uint16_t, D>(), hn::Or(result, sign));
}

#else

template <class D>
HWY_INLINE hn::Vec<D> FromHalf(D d, hn::Vec<hn::Rebind<uint16_t, D>> half) {
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), half));
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> ToHalf(D d, hn::Vec<D> v) {
  return hn::BitCast(hn::Rebind<uint16_t, D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
}

#endif

template <class D>
HWY_INLINE hn::Vec<D> FromBfloat16(D d, hn::Vec<hn::Rebind<uint16_t, D>> bfloat) {
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bfloat)));
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> ToBfloat16(D d, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fffu)), odd);
  const auto nan = hn::Or(bits, hn::Set(du, 1u << 22));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(du, 0x7fffffffu)), hn::Set(du, 0x7f800000u));
  return hn::TruncateTo(hn::Rebind<uint16_t, D>(),
                        hn::ShiftRight<16>(hn::IfThenElse(is_nan, nan, rounded)));
}

// Loads element i and those after it. `scale` is that of the group, for kInt8.
template <WireFormat kFormat, class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const uint8_t* from, size_t i, float scale) {
  if constexpr (kFormat == WireFormat::kInt8) {
    const auto bytes = LoadBytes(hn::Rebind<int8_t, D>(), from + i);
    const auto integers = hn::PromoteTo(hn::Rebind<int32_t, D>(), bytes);
    return hn::Mul(hn::Set(d, scale), hn::ConvertTo(d, integers));
  } else if constexpr (kFormat == WireFormat::kFloat32) {
    return LoadBytes(d, from + i * sizeof(float));
  } else {
    const auto halves = LoadBytes(hn::Rebind<uint16_t, D>(), from + i * sizeof(uint16_t));
    return kFormat == WireFormat::kFloat16 ? FromHalf(d, halves) : FromBfloat16(d, halves);
  }
}

// For float16 and bfloat16.
template <WireFormat kFormat, class D>
HWY_INLINE void StoreElements(D d, hn::Vec<D> v, uint8_t* to, size_t i) {
  const auto halves = kFormat == WireFormat::kFloat16 ? ToHalf(d, v) : ToBfloat16(d, v);
  StoreBytes(hn::Rebind<uint16_t, D>(), halves, to + i * sizeof(uint16_t));
}

}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#endif  // KEELSON_CORE_WIRE_ELEMENT_VECTORS_INL_H_
