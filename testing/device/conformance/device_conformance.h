// The tests that every Device passes: of the library keelson_device_conformance. A test program
// links it and instantiates the suite for its devices:
//
//   INSTANTIATE_TEST_SUITE_P(
//       Cpu, DeviceConformanceTest,
//       testing::Values(ConformanceDevice{"one_thread", [](int) { return CreateCpuDevice(1); }}),
//       ConformanceDevice::NameOf);
//
// The tests assume nothing about the time of a device's work beyond device.h.
#ifndef KEELSON_TESTING_DEVICE_CONFORMANCE_DEVICE_CONFORMANCE_H_
#define KEELSON_TESTING_DEVICE_CONFORMANCE_DEVICE_CONFORMANCE_H_

#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/device/precision.h"
#include "testing/device/reference_operations.h"

namespace keelson {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A device to be tested.
struct ConformanceDevice {
  // A name of letters, digits and underscores.
  std::string name;
  // Makes a device. `peer` 0: the one under test; 1: another of the same kind, for the tests of
  // peers. FAILED_PRECONDITION, there is no such hardware here, skips the tests that need it.
  std::function<absl::StatusOr<std::unique_ptr<Device>>(int peer)> create;
  Precision precision = Precision::kFloat32;

  static std::string NameOf(const testing::TestParamInfo<ConformanceDevice>& info) {
    return info.param.name;
  }
  friend void PrintTo(const ConformanceDevice& device, std::ostream* out) { *out << device.name; }
};

class DeviceConformanceTest : public testing::TestWithParam<ConformanceDevice> {
 protected:
  using Floats = reference::Floats;
  using Doubles = reference::Doubles;
  using Memory = std::unique_ptr<DeviceMemory>;

  // An output of an operation. Behind its elements are more, which the operation must not change.
  class Output {
   public:
    Output(Memory memory, int64_t size) : memory_(std::move(memory)), size_(size) {}
    DeviceMemory* get() const { return memory_.get(); }
    DeviceMemory& operator*() const { return *memory_; }
    int64_t size() const { return size_; }

   private:
    Memory memory_;
    int64_t size_;
  };

  void SetUp() override;

  // Uniform in [-1, 1).
  static Floats Random(int64_t n, uint64_t seed);
  // `n` floats, each of them not a number.
  static Floats NotNumbers(int64_t n);

  // Zeros.
  Memory Allocate(int64_t n);
  // Memory of these elements alone.
  Memory Exact(const Floats& values);
  // An input of an operation: `values`, and behind them not-a-numbers.
  Memory Input(const Floats& values);
  // An output that an operation must overwrite: `n` times not-a-number.
  Output Garbage(int64_t n) { return InOut(NotNumbers(n)); }
  // An operand that an operation reads and writes.
  Output InOut(const Floats& values);

  Floats Read(const DeviceMemory& memory);
  // The elements; fails the test when those behind them were touched.
  Floats Read(const Output& output);

  // The tolerance for rounding in a sum of `terms` products of numbers up to 1, whose natural scale
  // is sqrt(terms): relative to it 1e-5 in float32, 2e-3 in TF32, 1e-2 in bfloat16.
  double ProductTolerance(int64_t terms) const;
  // The same of a sum of `terms` float32 numbers up to 1.
  static double SumTolerance(int64_t terms);

  // Each element within tolerance * (1 + |expected|); not a number where that is expected.
  static void ExpectNear(const Floats& actual, const Doubles& expected, double tolerance = 2e-6);
  void ExpectNear(const Output& actual, const Doubles& expected, double tolerance = 2e-6) {
    ExpectNear(Read(actual), expected, tolerance);
  }

  std::unique_ptr<Device> device_;
};

}  // namespace keelson

#endif  // KEELSON_TESTING_DEVICE_CONFORMANCE_DEVICE_CONFORMANCE_H_
