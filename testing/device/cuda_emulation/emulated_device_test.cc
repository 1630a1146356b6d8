// The conformance suite on the CUDA device, as far as it shows without a GPU: in each precision,
// and with several orders of the work on its streams.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/device/cuda/cuda_device.h"
#include "testing/device/conformance/device_conformance.h"
#include "testing/device/cuda_emulation/emulation.h"

namespace keelson {
namespace {

// Each test begins with the emulation as it is at first, unless one before has left something.
absl::StatusOr<std::unique_ptr<Device>> EmulatedGpu(int ordinal, Precision precision,
                                                    uint64_t seed) {
  EXPECT_THAT(cuda_emulation::Complaints(), testing::IsEmpty());
  if (cuda_emulation::Leaks().empty()) {
    cuda_emulation::Options options;
    options.gpus = 2;
    options.order_seed = seed;
    cuda_emulation::Reset(options);
  }
  return CreateCudaDevice(ordinal, precision);
}

ConformanceDevice Emulated(Precision precision, uint64_t seed) {
  return {absl::StrCat(PrecisionName(precision), "_seed_", seed),
          [=](int peer) { return EmulatedGpu(peer, precision, seed); }, precision};
}

// Fewer where a sanitizer makes them slow: the thread sanitizer sees one thread in all of them.
std::vector<ConformanceDevice> Devices() {
  std::vector<ConformanceDevice> devices = {Emulated(Precision::kFloat32, 1)};
#if !defined(__SANITIZE_THREAD__)
  devices.push_back(Emulated(Precision::kBfloat16, 2));
#if !defined(__SANITIZE_ADDRESS__)
  devices.push_back(Emulated(Precision::kTf32, 3));
  devices.push_back(Emulated(Precision::kFloat32, 4));
#endif
#endif
  return devices;
}

INSTANTIATE_TEST_SUITE_P(EmulatedCuda, DeviceConformanceTest, testing::ValuesIn(Devices()),
                         ConformanceDevice::NameOf);

}  // namespace
}  // namespace keelson
