#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

// Around vectors, warps and blocks of threads, and large enough for several threads.
std::vector<std::pair<int64_t, int64_t>> Matrices() {
  std::vector<std::pair<int64_t, int64_t>> extents = {{0, 5}, {5, 0}, {1, 5003}, {20001, 1}};
  for (int64_t rows : {1, 7, 33, 257}) {
    for (int64_t columns : {1, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 129}) {
      extents.emplace_back(rows, columns);
    }
  }
  extents.emplace_back(1501, 100);
  return extents;
}

TEST_P(DeviceConformanceTest, ScalesRows) {
  for (const auto& [rows, columns] : Matrices()) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    const Floats in = Random(rows * columns, 70), factors = Random(rows, 71);
    const Output x = InOut(in);
    device_->ScaleRows(rows, columns, *Input(factors), x.get());
    ExpectNear(x, reference::ScaleRows(columns, factors, in), 1e-7);
  }
}

TEST_P(DeviceConformanceTest, AddsARowVector) {
  for (const auto& [rows, columns] : Matrices()) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    const Floats in = Random(rows * columns, 72), v = Random(columns, 73);
    const Output x = InOut(in);
    device_->AddRowVector(rows, columns, -1.25f, *Input(v), x.get());
    ExpectNear(x, reference::AddRowVector(-1.25, v, in), 1e-6);
  }
}

TEST_P(DeviceConformanceTest, RowOperationsKeepNotANumberInItsRowOrColumn) {
  const Output scaled = InOut(Floats(6, 0.0f)), added = InOut(Floats(6, 0.0f));
  device_->ScaleRows(3, 2, *Input({1, kNan, 1}), scaled.get());
  device_->AddRowVector(3, 2, 1, *Input({1, kNan}), added.get());
  const Floats by_row = Read(scaled), by_column = Read(added);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(std::isnan(by_row[i]), i / 2 == 1) << i;
    EXPECT_EQ(std::isnan(by_column[i]), i % 2 == 1) << i;
  }
}

TEST_P(DeviceConformanceTest, RepeatsRowOperations) {
  constexpr int64_t kRows = 33, kColumns = 10, kElements = kRows * kColumns;
  const Memory factors = Allocate(kRows), v = Allocate(kColumns);
  const Output x = InOut(Random(kElements, 74)), direct = InOut(Random(kElements, 74));
  for (uint64_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    device_->CopyToDevice(Random(kRows, 75 + i), factors.get());
    device_->CopyToDevice(Random(kColumns, 85 + i), v.get());
    const auto run = [&](const Output& matrix) {
      device_->ScaleRows(kRows, kColumns, *factors, matrix.get());
      device_->AddRowVector(kRows, kColumns, 2, *v, matrix.get());
    };
    run(direct);
    device_->Repeat(15, [&] { run(x); });
    EXPECT_EQ(Read(x), Read(direct));
  }
}

}  // namespace
}  // namespace keelson
