#include <array>
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

TEST_P(DeviceConformanceTest, DotsRows) {
  for (const auto& [rows, columns] : Matrices()) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    const Floats a = Random(rows * columns, 76), b = Random(rows * columns, 77);
    const Floats before = Random(rows, 78);
    const Output fresh = Garbage(rows), added = InOut(before);
    device_->RowDots(rows, columns, -1.25f, *Input(a), *Input(b), 0, fresh.get());
    ExpectNear(fresh, reference::RowDots(columns, -1.25, a, b, 0, before), SumTolerance(columns));
    const Memory same = Input(a);
    device_->RowDots(rows, columns, 0.5f, *same, *same, -2, added.get());
    ExpectNear(added, reference::RowDots(columns, 0.5, a, a, -2, before), SumTolerance(columns));
  }
}

TEST_P(DeviceConformanceTest, AddsScaledRows) {
  for (const auto& [rows, columns] : Matrices()) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    const Floats x = Random(rows * columns, 79), before = Random(rows * columns, 80);
    const Floats factors = Random(rows, 81);
    const Output fresh = Garbage(rows * columns), added = InOut(before);
    device_->AddScaledRows(rows, columns, -1.25f, *Input(factors), *Input(x), 0, fresh.get());
    ExpectNear(fresh, reference::AddScaledRows(columns, -1.25, factors, x, 0, before), 1e-6);
    device_->AddScaledRows(rows, columns, 0.5f, *Input(factors), *Input(x), -2, added.get());
    ExpectNear(added, reference::AddScaledRows(columns, 0.5, factors, x, -2, before), 1e-6);
  }
}

TEST_P(DeviceConformanceTest, DotsPairs) {
  for (const bool diagonal : {false, true}) {
    for (const auto& [rows, vectors, dim] : std::vector<std::array<int64_t, 3>>{{0, 3, 4},
                                                                                {3, 0, 4},
                                                                                {3, 1, 5},
                                                                                {1, 2, 1},
                                                                                {33, 3, 17},
                                                                                {5, 9, 16},
                                                                                {2, 27, 64},
                                                                                {3, 33, 130},
                                                                                {301, 7, 40}}) {
      SCOPED_TRACE(testing::Message() << rows << "x" << vectors << "x" << dim);
      const PairGeometry geometry = {rows, vectors, dim, diagonal};
      const Floats in = Random(rows * vectors * dim, 83);
      const Floats gradient = Random(rows * geometry.pairs(), 84);
      const Memory x = Input(in);
      const Output y = Garbage(rows * geometry.pairs()), dx = Garbage(rows * vectors * dim);
      device_->PairwiseDots(geometry, *x, y.get());
      ExpectNear(y, reference::PairwiseDots(geometry, in), SumTolerance(dim));
      device_->PairwiseDotsBackward(geometry, *x, *Input(gradient), dx.get());
      ExpectNear(dx, reference::PairwiseDotsBackward(geometry, in, gradient),
                 SumTolerance(vectors + 1));
    }
  }
}

TEST_P(DeviceConformanceTest, Transposes) {
  for (const auto& extents : std::vector<std::array<int64_t, 4>>{{0, 2, 3, 4},
                                                                 {2, 3, 0, 4},
                                                                 {1, 1, 1, 7},
                                                                 {3, 5, 7, 2},
                                                                 {2, 33, 4, 65},
                                                                 {70, 28, 28, 3}}) {
    for (const auto& axes : std::vector<std::array<int, 3>>{
             {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
      const TransposeGeometry geometry = {
          extents[0], {extents[1], extents[2], extents[3]}, {axes[0], axes[1], axes[2]}};
      const Floats in = Random(geometry.size(), 85);
      const Output y = Garbage(geometry.size());
      device_->Transpose(geometry, *Input(in), y.get());
      EXPECT_EQ(Read(y), reference::Transpose(geometry, in));
    }
  }
}

TEST_P(DeviceConformanceTest, TakesInverseSquareRoots) {
  for (const int64_t n : {0, 1, 5, 64, 1027, 40001}) {
    SCOPED_TRACE(n);
    Floats x = Random(n, 82);
    for (float& element : x) element = element * element;
    const Output y = Garbage(n), in_place = InOut(x);
    device_->InverseSquareRoot(n, 0.25f, *Input(x), y.get());
    ExpectNear(y, reference::InverseSquareRoot(0.25, x), 1e-6);
    device_->InverseSquareRoot(n, 0.25f, *in_place, in_place.get());
    EXPECT_EQ(Read(in_place), Read(y));
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
