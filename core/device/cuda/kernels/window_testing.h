// What the tests of windows share: values, comparison, elements out of packs.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_WINDOW_TESTING_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_WINDOW_TESTING_H_

#include <cmath>
#include <cstdint>

#include "core/base/random.h"
#include "core/device/cuda/kernels/host_device.h"
#include "gtest/gtest.h"
#include "testing/device/reference_operations.h"

namespace keelson::cuda {

// Returns few different values: windows have equal maxima, and sums are exact.
inline reference::Floats Random(int64_t n, uint64_t seed) {
  reference::Floats values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(std::floor(8 * UniformFloat(Philox(seed, 0, static_cast<uint64_t>(i))[0])));
  }
  return values;
}

inline void ExpectNear(const reference::Floats& actual, const reference::Doubles& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

// The elements of n / kPack packs.
template <int kPack, typename F>
reference::Floats ElementsOf(int64_t n, F f) {
  reference::Floats values;
  for (int64_t i = 0; i < n / kPack; ++i) {
    const Pack<kPack> pack = f(i);
    values.insert(values.end(), pack.lane, pack.lane + kPack);
  }
  return values;
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_WINDOW_TESTING_H_
