#include "core/wire/value_codec.h"

#include <bit>
#include <cstddef>
#include <cstring>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/wire/value_codec.cc"
#include "hwy/foreach_target.h"
#include "core/wire/element_vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

template <WireFormat kFormat>
void EncodeAs(const float* from, size_t n, uint8_t* to) {
  ForEachVector(n, [=](auto d, size_t i)
                       HWY_ATTR { StoreElements<kFormat>(d, hn::LoadU(d, from + i), to, i); });
}

template <WireFormat kFormat>
void DecodeAs(const uint8_t* from, size_t n, float scale, float* to) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    hn::StoreU(LoadElements<kFormat>(d, from, i, scale), d, to + i);
  });
}

void EncodeHalves(const float* from, size_t n, uint8_t* to) {
  EncodeAs<WireFormat::kFloat16>(from, n, to);
}
void EncodeBfloats(const float* from, size_t n, uint8_t* to) {
  EncodeAs<WireFormat::kBfloat16>(from, n, to);
}
void DecodeHalves(const uint8_t* from, size_t n, float* to) {
  DecodeAs<WireFormat::kFloat16>(from, n, 1, to);
}
void DecodeBfloats(const uint8_t* from, size_t n, float* to) {
  DecodeAs<WireFormat::kBfloat16>(from, n, 1, to);
}
void DecodeBytes(const uint8_t* from, size_t n, float scale, float* to) {
  DecodeAs<WireFormat::kInt8>(from, n, scale, to);
}

// Whether no element has all bits of `exponent` set, as infinities and NaNs have.
template <typename T>
bool NoneHasExponent(const uint8_t* from, size_t n, T exponent) {
  const hn::ScalableTag<T> d;
  const auto bits = hn::Set(d, exponent);
  auto largest = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    largest = hn::Max(largest, hn::And(LoadBytes(d, from + i * sizeof(T)), bits));
  }
  if (!hn::AllFalse(d, hn::Eq(largest, bits))) return false;
  for (; i < n; ++i) {
    T element;
    std::memcpy(&element, from + i * sizeof(T), sizeof(T));
    if ((element & exponent) == exponent) return false;
  }
  return true;
}

bool FiniteWords(const uint8_t* from, size_t n) {
  return NoneHasExponent<int32_t>(from, n, 0x7f800000);
}
bool FiniteShorts(const uint8_t* from, size_t n, int16_t exponent) {
  return NoneHasExponent<int16_t>(from, n, exponent);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

HWY_EXPORT(EncodeHalves);
HWY_EXPORT(EncodeBfloats);
HWY_EXPORT(DecodeHalves);
HWY_EXPORT(DecodeBfloats);
HWY_EXPORT(DecodeBytes);
HWY_EXPORT(FiniteWords);
HWY_EXPORT(FiniteShorts);

}  // namespace

void EncodeElements(WireFormat format, absl::Span<const float> from, uint8_t* to) {
  if (from.empty()) return;
  if (format == WireFormat::kFloat32) {
    std::memcpy(to, from.data(), from.size() * sizeof(float));
  } else if (format == WireFormat::kFloat16) {
    HWY_DYNAMIC_DISPATCH(EncodeHalves)(from.data(), from.size(), to);
  } else {
    HWY_DYNAMIC_DISPATCH(EncodeBfloats)(from.data(), from.size(), to);
  }
}

void DecodeElements(WireFormat format, const uint8_t* from, absl::Span<float> to) {
  if (to.empty()) return;
  if (format == WireFormat::kFloat32) {
    std::memcpy(to.data(), from, to.size() * sizeof(float));
  } else if (format == WireFormat::kFloat16) {
    HWY_DYNAMIC_DISPATCH(DecodeHalves)(from, to.size(), to.data());
  } else {
    HWY_DYNAMIC_DISPATCH(DecodeBfloats)(from, to.size(), to.data());
  }
}

bool AllFinite(WireFormat format, const uint8_t* from, int64_t elements) {
  if (format == WireFormat::kFloat32) return HWY_DYNAMIC_DISPATCH(FiniteWords)(from, elements);
  const int16_t exponent = format == WireFormat::kFloat16 ? 0x7c00 : 0x7f80;
  return HWY_DYNAMIC_DISPATCH(FiniteShorts)(from, elements, exponent);
}

void DecodeInt8Group(float scale, const uint8_t* from, absl::Span<float> to) {
  HWY_DYNAMIC_DISPATCH(DecodeBytes)(from, to.size(), scale, to.data());
}

}  // namespace keelson
#endif  // HWY_ONCE
