// Shared code of the tests of the emulation.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_TESTING_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_TESTING_H_

#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "testing/device/cuda_emulation/emulation.h"

namespace keelson::cuda_emulation {

// Starts over for each test, and expects each to leave nothing behind.
class EmulationTest : public testing::Test {
 protected:
  EmulationTest() { Reset({}); }
  void TearDown() override { EXPECT_EQ(Leaks(), ""); }

  static Options WithSeed(uint64_t seed) {
    Options options;
    options.order_seed = seed;
    return options;
  }
};

// Floats on the current GPU.
class GpuFloats {
 public:
  explicit GpuFloats(size_t size) : size_(size) {
    EXPECT_EQ(cudaMalloc(&data_, size * sizeof(float)), cudaSuccess);
  }
  explicit GpuFloats(const std::vector<float>& values) : GpuFloats(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  explicit GpuFloats(std::initializer_list<float> values) : GpuFloats(std::vector<float>(values)) {}
  ~GpuFloats() { cudaFree(data_); }
  GpuFloats(const GpuFloats&) = delete;
  GpuFloats& operator=(const GpuFloats&) = delete;

  float* data() const { return data_; }
  size_t bytes() const { return size_ * sizeof(float); }
  std::vector<float> Read() const {
    std::vector<float> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  const size_t size_;
  float* data_ = nullptr;
};

// Page-locked floats.
class HostFloats {
 public:
  explicit HostFloats(size_t size) : size_(size) {
    void* memory = nullptr;
    EXPECT_EQ(cudaHostAlloc(&memory, size * sizeof(float), cudaHostAllocDefault), cudaSuccess);
    data_ = static_cast<float*>(memory);
  }
  ~HostFloats() { cudaFreeHost(data_); }
  HostFloats(const HostFloats&) = delete;
  HostFloats& operator=(const HostFloats&) = delete;

  float* data() const { return data_; }
  size_t bytes() const { return size_ * sizeof(float); }
  float& operator[](size_t i) { return data_[i]; }

 private:
  const size_t size_;
  float* data_ = nullptr;
};

class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDefault), cudaSuccess); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

template <typename... Parameters, typename... Arguments>
cudaError_t Start(unsigned blocks, unsigned threads, cudaStream_t stream,
                  void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_TESTING_H_
