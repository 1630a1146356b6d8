// Tests of whole kernels, executed by the emulation.
#ifndef KEELSON_TESTING_DEVICE_KERNEL_TESTING_H_
#define KEELSON_TESTING_DEVICE_KERNEL_TESTING_H_

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "testing/device/cuda_emulation/emulation.h"

namespace keelson::cuda {

class KernelTest : public ::testing::Test {
 protected:
  KernelTest() { cuda_emulation::Reset({}); }

  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_THAT(cuda_emulation::Complaints(), ::testing::IsEmpty());
    EXPECT_EQ(cuda_emulation::Leaks(), "");
  }
};

// An array on the GPU, `offset` elements behind a multiple of 256 bytes, with guards around it.
template <typename T>
class GpuArray {
 public:
  explicit GpuArray(const std::vector<T>& values, size_t offset = 0)
      : offset_(kGuard + offset), size_(values.size()) {
    Bytes bytes((offset_ + size_ + kGuard) * sizeof(T), kGuardByte);
    if (size_ > 0) std::memcpy(&bytes[offset_ * sizeof(T)], values.data(), size_ * sizeof(T));
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes.size()), cudaSuccess);
    memory_ = static_cast<T*>(memory);
    EXPECT_EQ(cudaMemcpy(memory_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~GpuArray() { EXPECT_EQ(cudaFree(memory_), cudaSuccess); }
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;

  T* data() { return memory_ + offset_; }

  // Waits for the kernels; checks that none of them has written beyond the ends.
  std::vector<T> Read() const {
    Bytes bytes((offset_ + size_ + kGuard) * sizeof(T));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(bytes.data(), memory_, bytes.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    std::vector<T> values(size_);
    if (size_ > 0) std::memcpy(values.data(), &bytes[offset_ * sizeof(T)], size_ * sizeof(T));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const bool inside = i >= offset_ * sizeof(T) && i < (offset_ + size_) * sizeof(T);
      if (!inside && bytes[i] != kGuardByte) ADD_FAILURE() << "written beyond the ends: " << i;
    }
    return values;
  }

 private:
  using Bytes = std::vector<uint8_t>;
  static constexpr size_t kGuard = 256 / sizeof(T);
  static constexpr uint8_t kGuardByte = 0xa5;

  const size_t offset_;
  const size_t size_;
  T* memory_ = nullptr;
};

// The content of arrays that kernels must overwrite.
inline std::vector<float> Poison(int64_t n) {
  return std::vector<float>(n, std::numeric_limits<float>::quiet_NaN());
}

// Uniform in [-1, 1).
inline std::vector<float> RandomFloats(int64_t n, uint64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(2 * UniformFloat(Philox(seed, 0, static_cast<uint64_t>(i))[0]) - 1);
  }
  return values;
}

inline void ExpectClose(const std::vector<float>& actual, const std::vector<double>& expected,
                        double tolerance = 1e-5) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

// Around the borders of packs, warps, blocks and tiles.
inline constexpr int64_t kBorderSizes[] = {1,   2,   3,   4,   5,   31,   32,   33,   127,
                                           128, 129, 255, 256, 257, 1023, 1024, 1025, 5003};

}  // namespace keelson::cuda

#endif  // KEELSON_TESTING_DEVICE_KERNEL_TESTING_H_
