// Shared code of tests of the CUDA device on the emulated GPU.
#ifndef KEELSON_TESTING_DEVICE_EMULATED_GPU_TESTING_H_
#define KEELSON_TESTING_DEVICE_EMULATED_GPU_TESTING_H_

#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/device.h"
#include "testing/device/cuda_emulation/emulation.h"

namespace keelson {

using Floats = std::vector<float>;
using Memory = std::unique_ptr<DeviceMemory>;

// Work that waits for nothing is done in orders that depend on the seed.
inline std::vector<uint64_t> OrderSeeds() { return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; }

// Starts each test on new GPUs; afterwards they must hold nothing, and must have seen no violation
// of CUDA's rules.
class EmulatedGpuTest : public testing::Test {
 protected:
  void SetUp() override { Reset({}); }
  void TearDown() override {
    device_.reset();
    EXPECT_THAT(cuda_emulation::Complaints(), testing::IsEmpty());
    EXPECT_EQ(cuda_emulation::Leaks(), "");
    cuda_emulation::Reset({});
  }

  static void Reset(const cuda_emulation::Options& options) { cuda_emulation::Reset(options); }
  static cuda_emulation::Statistics Now() { return cuda_emulation::CurrentStatistics(); }
  // What makes the host wait for a GPU, or may.
  static int64_t Waits(const cuda_emulation::Statistics& statistics) {
    return statistics.stream_synchronizations + statistics.event_synchronizations +
           statistics.synchronous_copies + statistics.allocations + statistics.frees;
  }

  // A device on GPU 0.
  void Open(Precision precision = Precision::kFloat32) {
    auto device = CreateCudaDevice(0, precision);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  // Another order of the GPU's work.
  void OpenWithSeed(uint64_t seed) {
    device_.reset();
    ASSERT_EQ(cuda_emulation::Leaks(), "");
    cuda_emulation::Options options;
    options.order_seed = seed;
    Reset(options);
    Open();
  }

  Memory Put(const Floats& values) {
    Memory memory = *device_->Allocate(static_cast<int64_t>(values.size()));
    device_->CopyToDevice(values, memory.get());
    return memory;
  }
  Floats Get(const DeviceMemory& memory) {
    Floats values(memory.size());
    const absl::Status status = device_->CopyToHost(memory, absl::MakeSpan(values));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  std::unique_ptr<Device> device_;
};

}  // namespace keelson

#endif  // KEELSON_TESTING_DEVICE_EMULATED_GPU_TESTING_H_
