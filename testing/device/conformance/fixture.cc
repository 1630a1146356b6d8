#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

// Elements behind an operand: as many as a kernel could touch that rounds an extent up to two
// vectors.
constexpr size_t kBehind = 8;
constexpr float kUntouched = 12345;

}  // namespace

void DeviceConformanceTest::SetUp() {
  auto device = GetParam().create(0);
  if (absl::IsFailedPrecondition(device.status())) {
    GTEST_SKIP() << "skipped: " << device.status().message();
  }
  ASSERT_TRUE(device.ok()) << device.status();
  device_ = *std::move(device);
}

DeviceConformanceTest::Floats DeviceConformanceTest::Random(int64_t n, uint64_t seed) {
  Floats values(n);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 2.0f * UniformFloat(Philox(seed, 7, i)[0]) - 1.0f;
  }
  return values;
}

DeviceConformanceTest::Floats DeviceConformanceTest::NotNumbers(int64_t n) {
  return Floats(n, kNan);
}

DeviceConformanceTest::Memory DeviceConformanceTest::Allocate(int64_t n) {
  auto memory = device_->Allocate(n);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return *std::move(memory);
}

DeviceConformanceTest::Memory DeviceConformanceTest::Exact(const Floats& values) {
  Memory memory = Allocate(static_cast<int64_t>(values.size()));
  device_->CopyToDevice(values, memory.get());
  return memory;
}

DeviceConformanceTest::Memory DeviceConformanceTest::Input(const Floats& values) {
  Floats all = values;
  all.resize(values.size() + kBehind, kNan);
  return Exact(all);
}

DeviceConformanceTest::Output DeviceConformanceTest::InOut(const Floats& values) {
  Floats all = values;
  all.resize(values.size() + kBehind, kUntouched);
  return Output(Exact(all), static_cast<int64_t>(values.size()));
}

DeviceConformanceTest::Floats DeviceConformanceTest::Read(const DeviceMemory& memory) {
  Floats values(memory.size());
  const absl::Status status = device_->CopyToHost(memory, absl::MakeSpan(values));
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

DeviceConformanceTest::Floats DeviceConformanceTest::Read(const Output& output) {
  Floats values = Read(*output);
  const size_t size = output.size();
  EXPECT_EQ(Floats(values.begin() + static_cast<std::ptrdiff_t>(size), values.end()),
            Floats(kBehind, kUntouched))
      << "behind element " << size;
  values.resize(size);
  return values;
}

double DeviceConformanceTest::ProductTolerance(int64_t terms) const {
  const double scale = std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)));
  switch (GetParam().precision) {
    case Precision::kFloat32:
      return 1e-5 * scale;
    case Precision::kTf32:
      return 2e-3 * scale;
    case Precision::kBfloat16:
      return 1e-2 * scale;
  }
  return 0;
}

double DeviceConformanceTest::SumTolerance(int64_t terms) {
  return 2e-6 * std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)));
}

void DeviceConformanceTest::ExpectNear(const Floats& actual, const Doubles& expected,
                                       double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(actual[i])) << "element " << i << ": " << actual[i];
    } else {
      ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i])))
          << "element " << i;
    }
  }
}

}  // namespace keelson
