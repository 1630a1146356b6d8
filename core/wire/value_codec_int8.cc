#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/wire/value_codec.h"

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/wire/value_codec_int8.cc"
#include "hwy/foreach_target.h"
#include "core/wire/element_vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

constexpr float kLargestByte = 127;

// Adds `from` to `residual`; returns the largest magnitude, a NaN being larger than all others.
float AddToResidual(const float* from, size_t n, float* residual) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  // Magnitudes compare as their bits do.
  auto largest_bits = hn::Zero(di);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto x = hn::Add(hn::LoadU(d, from + i), hn::LoadU(d, residual + i));
    hn::StoreU(x, d, residual + i);
    largest_bits = hn::Max(largest_bits, hn::BitCast(di, hn::Abs(x)));
  }
  int32_t largest = hn::GetLane(hn::MaxOfLanes(di, largest_bits));
  for (; i < n; ++i) {
    residual[i] = from[i] + residual[i];
    largest = std::max(largest, std::bit_cast<int32_t>(std::abs(residual[i])));
  }
  return std::bit_cast<float>(largest);
}

float ScaleOf(float largest) {
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  const float scale = largest / kLargestByte;
  // Rounded up, it would decode the largest float32 as infinite.
  return std::isfinite(scale * kLargestByte) ? scale : std::nextafter(scale, 0.0f);
}

// Encodes `residual` and leaves in it what the encoding loses. scale > 0.
void Quantize(float scale, size_t n, float* residual, uint8_t* to) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    using D = decltype(d);
    const auto x = hn::LoadU(d, residual + i);
    // A subnormal scale is coarse: it may be much less than the largest / 127.
    const auto ratio = hn::Min(hn::Max(hn::Div(x, hn::Set(d, scale)), hn::Set(d, -kLargestByte)),
                               hn::Set(d, kLargestByte));
    // The last place of 1.5 * 2^23 is 1: the addition rounds to an integer, ties to even.
    const auto shift = hn::Set(d, 12582912.0f);
    const auto rounded = hn::Sub(hn::Add(ratio, shift), shift);
    hn::StoreU(hn::Sub(x, hn::Mul(hn::Set(d, scale), rounded)), d, residual + i);
    const auto integers = hn::ConvertTo(hn::Rebind<int32_t, D>(), rounded);
    const hn::Rebind<int8_t, D> d8;
    StoreBytes(d8, hn::DemoteTo(d8, integers), to + i);
  });
}

void EncodeGroup(const float* from, size_t n, float* residual, uint8_t* to) {
  const float scale = ScaleOf(AddToResidual(from, n, residual));
  std::memcpy(to, &scale, sizeof(scale));
  to += sizeof(scale);
  if (scale > 0) {
    Quantize(scale, n, residual, to);
    return;
  }
  std::memset(to, 0, n);
  if (std::isnan(scale)) std::fill(residual, residual + n, 0.0f);
}

void EncodeGroups(const float* from, size_t n, float* residual, uint8_t* to) {
  constexpr size_t kGroup = kInt8GroupElements;
  for (size_t begin = 0; begin < n; begin += kGroup) {
    const size_t size = std::min(kGroup, n - begin);
    EncodeGroup(from + begin, size, residual + begin, to);
    to += sizeof(float) + size;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(EncodeGroups);

}  // namespace

void EncodeInt8(absl::Span<const float> from, absl::Span<float> residual, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(EncodeGroups)(from.data(), from.size(), residual.data(), to);
}

}  // namespace keelson
#endif  // HWY_ONCE
