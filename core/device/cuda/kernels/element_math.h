// Arithmetic of single elements: activations, losses, dropout's random mask.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_ELEMENT_MATH_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_ELEMENT_MATH_H_

#include <math.h>

#include <cstdint>

#include "core/device/cuda/kernels/host_device.h"
#include "core/device/geometry.h"

namespace keelson::cuda {

KEELSON_HOST_DEVICE inline float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

KEELSON_HOST_DEVICE inline float Activated(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::kRelu:  // keeps not-a-number visible
      return x < 0.0f ? 0.0f : x;
    case ActivationKind::kTanh:
      return tanhf(x);
    case ActivationKind::kSigmoid:
      return Sigmoid(x);
  }
  return x;
}

// Gradient with respect to the input of the activation whose output is `y`.
KEELSON_HOST_DEVICE inline float ActivationGradient(ActivationKind kind, float y, float dy) {
  switch (kind) {
    case ActivationKind::kRelu:
      return y > 0.0f ? dy : 0.0f;
    case ActivationKind::kTanh:
      return dy * (1.0f - y * y);
    case ActivationKind::kSigmoid:
      return dy * y * (1.0f - y);
  }
  return dy;
}

// 1 / sqrt(2) and 1 / sqrt(2 pi)
constexpr float kInverseRootOfTwo = 0.70710678f;
constexpr float kNormalDensityAtZero = 0.39894228f;

// The complement keeps the digits of a small probability, which 1 + erf would lose.
KEELSON_HOST_DEVICE inline float NormalProbabilityOf(float x) {
  return 0.5f * erfcf(-kInverseRootOfTwo * x);
}

KEELSON_HOST_DEVICE inline float Gated(GateKind kind, float x) {
  switch (kind) {
    case GateKind::kGelu:
      return x * NormalProbabilityOf(x);
    case GateKind::kSilu:
      return x * Sigmoid(x);
  }
  return x;
}

// Gradient with respect to the input `x` of the gate.
KEELSON_HOST_DEVICE inline float GateGradientOf(GateKind kind, float x, float dy) {
  switch (kind) {
    case GateKind::kGelu:
      return dy * (NormalProbabilityOf(x) + x * kNormalDensityAtZero * expf(-0.5f * x * x));
    case GateKind::kSilu: {
      const float probability = Sigmoid(x);
      return dy * (probability + x * probability * (1.0f - probability));
    }
  }
  return dy;
}

// max(s, 0) - s * label + log(1 + exp(-|s|))
KEELSON_HOST_DEVICE inline float SigmoidLoss(float score, float label) {
  return fmaxf(score, 0.0f) - score * label + log1pf(expf(-fabsf(score)));
}

struct PhiloxBits {
  uint32_t word[4];
};

// The same bits as Philox(key, stream, counter) of core/base/random.h.
KEELSON_HOST_DEVICE inline PhiloxBits PhiloxAt(uint64_t key, uint64_t stream, uint64_t counter) {
  uint32_t x0 = static_cast<uint32_t>(counter), x1 = static_cast<uint32_t>(counter >> 32);
  uint32_t x2 = static_cast<uint32_t>(stream), x3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * x0, p1 = uint64_t{0xCD9E8D57} * x2;
    x0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<uint32_t>(p1);
    x2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{x0, x1, x2, x3}};
}

// The same number as UniformFloat(bits) of core/base/random.h.
KEELSON_HOST_DEVICE inline float UniformAt(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Dropout of elements [4 * group, 4 * group + 4): one draw serves four elements.
KEELSON_HOST_DEVICE inline Pack<4> DroppedOut(float rate, uint64_t seed, uint64_t philox_stream,
                                              int64_t group, Pack<4> x) {
  const PhiloxBits bits = PhiloxAt(seed, philox_stream, static_cast<uint64_t>(group));
  const float scale = 1.0f / (1.0f - rate);
  Pack<4> y;
  for (int j = 0; j < 4; ++j) {
    y.lane[j] = UniformAt(bits.word[j]) >= rate ? x.lane[j] * scale : 0.0f;
  }
  return y;
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_ELEMENT_MATH_H_
