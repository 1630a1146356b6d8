#include <utility>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "testing/device/kernel_testing.h"
#include "testing/device/reference_operations.h"

namespace keelson::cuda {
namespace {

using KernelRowwiseTest = KernelTest;
using Floats = std::vector<float>;

// Calls visit(rows, columns, offset of the matrix) for extents at borders, aligned and not.
template <typename Visit>
void ForEachMatrix(Visit visit) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1},
                               {1025, 1},
                               {3, 4},
                               {257, 10},
                               {33, 132},
                               {5, 129},
                               {1025, 3},
                               {2, 1024},
                               {300, 64}}) {
    for (size_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << columns << " columns at " << offset);
      visit(rows, columns, offset);
    }
  }
}

TEST_F(KernelRowwiseTest, ScalesRows) {
  ForEachMatrix([](int64_t rows, int64_t columns, size_t offset) {
    const Floats in = RandomFloats(rows * columns, 1), factors = RandomFloats(rows, 2);
    GpuArray<float> x(in, offset), f(factors);
    ASSERT_EQ(LaunchScaleRows(nullptr, rows, columns, f.data(), x.data()), cudaSuccess);
    ExpectClose(x.Read(), reference::ScaleRows(columns, factors, in));
  });
}

TEST_F(KernelRowwiseTest, AddsARowVector) {
  ForEachMatrix([](int64_t rows, int64_t columns, size_t offset) {
    const Floats in = RandomFloats(rows * columns, 3), v = RandomFloats(columns, 4);
    GpuArray<float> x(in, offset), added(v);
    ASSERT_EQ(LaunchAddRowVector(nullptr, rows, columns, -0.75f, added.data(), x.data()),
              cudaSuccess);
    ExpectClose(x.Read(), reference::AddRowVector(-0.75, v, in));
  });
}

TEST_F(KernelRowwiseTest, DotsRows) {
  ForEachMatrix([](int64_t rows, int64_t columns, size_t offset) {
    const Floats in = RandomFloats(rows * columns, 5), other = RandomFloats(rows * columns, 6);
    const Floats before = RandomFloats(rows, 7);
    for (const float beta : {0.0f, -0.5f}) {
      GpuArray<float> a(in, offset), b(other), y(before);
      ASSERT_EQ(LaunchRowDots(nullptr, rows, columns, 0.75f, a.data(), b.data(), beta, y.data()),
                cudaSuccess);
      ExpectClose(y.Read(), reference::RowDots(columns, 0.75, in, other, beta, before));
    }
  });
}

TEST_F(KernelRowwiseTest, AddsScaledRows) {
  ForEachMatrix([](int64_t rows, int64_t columns, size_t offset) {
    const Floats in = RandomFloats(rows * columns, 8), before = RandomFloats(rows * columns, 9);
    const Floats factors = RandomFloats(rows, 10);
    for (const float beta : {0.0f, -0.5f}) {
      GpuArray<float> x(in, offset), y(before, offset), f(factors);
      ASSERT_EQ(
          LaunchAddScaledRows(nullptr, rows, columns, 0.75f, f.data(), x.data(), beta, y.data()),
          cudaSuccess);
      ExpectClose(y.Read(), reference::AddScaledRows(columns, 0.75, factors, in, beta, before));
    }
  });
}

TEST_F(KernelRowwiseTest, LaunchesNothingForNoElements) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{0, 3}, {3, 0}}) {
    EXPECT_EQ(LaunchScaleRows(nullptr, rows, columns, nullptr, nullptr), cudaSuccess);
    EXPECT_EQ(LaunchAddRowVector(nullptr, rows, columns, 1, nullptr, nullptr), cudaSuccess);
    EXPECT_EQ(LaunchAddScaledRows(nullptr, rows, columns, 1, nullptr, nullptr, 0, nullptr),
              cudaSuccess);
  }
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 0);
}

}  // namespace
}  // namespace keelson::cuda
