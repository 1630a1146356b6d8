// Elements of the wire formats, with the bits of core/wire/value_codec.h.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_MATH_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_MATH_H_

#include <cstdint>

#include "core/device/cuda/kernels/host_device.h"

namespace keelson::cuda {

constexpr uint32_t kInfinityBits = 0x7f800000u;

// A NaN is greater than all numbers.
KEELSON_HOST_DEVICE inline uint32_t MagnitudeBits(float x) { return BitsOf(x) & 0x7fffffffu; }

KEELSON_HOST_DEVICE inline bool IsNan(float x) { return MagnitudeBits(x) > kInfinityBits; }

// Without isfinite(), so that host and device code are the same.
KEELSON_HOST_DEVICE inline bool IsFinite(float x) { return MagnitudeBits(x) < kInfinityBits; }

KEELSON_HOST_DEVICE inline uint16_t ToBfloat16(float x) {
  const uint32_t bits = BitsOf(x);
  if (IsNan(x)) return static_cast<uint16_t>((bits | (1u << 22)) >> 16);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

KEELSON_HOST_DEVICE inline float FromBfloat16(uint16_t bfloat) {
  return FloatOf(static_cast<uint32_t>(bfloat) << 16);
}

KEELSON_HOST_DEVICE inline uint16_t ToFloat16(float x) {
  constexpr uint32_t kSmallestNormal = (127u - 14u) << 23, kTooLarge = (127u + 16u) << 23;
  const uint32_t magnitude = MagnitudeBits(x), sign = (BitsOf(x) & 0x80000000u) >> 16;
  uint32_t half;
  if (magnitude < kSmallestNormal) {
    // The last place of 0.5 is 2^-24, that of a subnormal, and the addition rounds.
    half = BitsOf(RoundedSum(FloatOf(magnitude), 0.5f)) - BitsOf(0.5f);
  } else if (magnitude < kTooLarge) {
    // Half of the last place, less one when that is even; a carry goes into the exponent.
    half = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  } else if (magnitude > kInfinityBits) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else {
    half = 0x7c00u;
  }
  return static_cast<uint16_t>(half | sign);
}

KEELSON_HOST_DEVICE inline float FromFloat16(uint16_t half) {
  constexpr uint32_t kExponentShift = 112u << 23;  // the difference of the exponents' biases
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = (half & 0x7fffu) << 13;
  uint32_t bits;
  if (magnitude < (0x0400u << 13)) {
    // A subnormal m * 2^-24 is (2^-14 + m * 2^-24) - 2^-14.
    const uint32_t smallest_normal = kExponentShift + (1u << 23);
    bits =
        BitsOf(RoundedDifference(FloatOf(magnitude + smallest_normal), FloatOf(smallest_normal)));
  } else if (magnitude < (0x7c00u << 13)) {
    bits = magnitude + kExponentShift;
  } else {
    const uint32_t quiet = magnitude > (0x7c00u << 13) ? 1u << 22 : 0u;
    bits = magnitude | kInfinityBits | quiet;
  }
  return FloatOf(bits | sign);
}

// The NaN that an x86 processor makes of gradient + residual.
KEELSON_HOST_DEVICE inline float NanOfSum(float gradient, float residual) {
  constexpr uint32_t kQuiet = 1u << 22;
  if (IsNan(gradient)) return FloatOf(BitsOf(gradient) | kQuiet);
  if (IsNan(residual)) return FloatOf(BitsOf(residual) | kQuiet);
  return FloatOf(0xffc00000u);  // of infinities
}

// gradient + residual, with the CPU's bits also where it is NaN: a GPU has one NaN only, and top-k
// ranks and sends the bits.
KEELSON_HOST_DEVICE inline float WithResidual(float gradient, float residual) {
  const float sum = RoundedSum(gradient, residual);
  return IsNan(sum) ? NanOfSum(gradient, residual) : sum;
}

// The scale of an int8 group from the bits of its largest magnitude.
KEELSON_HOST_DEVICE inline float Int8Scale(uint32_t largest_bits) {
  constexpr float kLargestByte = 127.0f;
  if (largest_bits >= kInfinityBits) return FloatOf(0x7fc00000u);
  const float scale = RoundedQuotient(FloatOf(largest_bits), kLargestByte);
  // Rounded up, it would decode the largest float32 as infinite.
  return IsFinite(RoundedProduct(scale, kLargestByte)) ? scale : FloatOf(BitsOf(scale) - 1u);
}

struct Int8Element {
  int8_t code;
  float residual;
};

// Encodes `x` in a group with this scale; returns the byte, and the encoding's loss.
KEELSON_HOST_DEVICE inline Int8Element ToInt8(float x, float scale) {
  if (!(scale > 0.0f)) return {0, IsNan(scale) ? 0.0f : x};
  float ratio = RoundedQuotient(x, scale);
  // A subnormal scale is coarse: it may be much less than the largest / 127.
  if (ratio < -127.0f) ratio = -127.0f;
  if (ratio > 127.0f) ratio = 127.0f;
  // The last place of 1.5 * 2^23 is 1: the addition rounds to an integer, ties to even.
  constexpr float kShift = 12582912.0f;
  const float rounded = RoundedDifference(RoundedSum(ratio, kShift), kShift);
  return {static_cast<int8_t>(rounded), RoundedDifference(x, RoundedProduct(scale, rounded))};
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_MATH_H_
