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

// Around groups of threads, warps and blocks.
std::vector<PairGeometry> Pairs() {
  std::vector<PairGeometry> geometries;
  for (const bool diagonal : {false, true}) {
    geometries.push_back({33, 2, 1, diagonal});
    geometries.push_back({5, 3, 7, diagonal});
    geometries.push_back({17, 9, 16, diagonal});
    geometries.push_back({3, 27, 64, diagonal});
    geometries.push_back({2, 40, 130, diagonal});
    geometries.push_back({1, 5, 1028, diagonal});
    geometries.push_back({70, 1, 12, diagonal});
  }
  return geometries;
}

TEST_F(KernelRowwiseTest, DotsPairs) {
  for (const PairGeometry& geometry : Pairs()) {
    for (size_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << geometry.vectors << " vectors of " << geometry.dim);
      const Floats in = RandomFloats(geometry.rows * geometry.vectors * geometry.dim, 11);
      const Floats gradient = RandomFloats(geometry.rows * geometry.pairs(), 12);
      GpuArray<float> x(in, offset), y(gradient), dy(gradient), dx(in, offset);
      ASSERT_EQ(LaunchPairwiseDots(nullptr, geometry, x.data(), y.data()), cudaSuccess);
      ExpectClose(y.Read(), reference::PairwiseDots(geometry, in));
      ASSERT_EQ(LaunchPairwiseDotsBackward(nullptr, geometry, x.data(), dy.data(), dx.data()),
                cudaSuccess);
      ExpectClose(dx.Read(), reference::PairwiseDotsBackward(geometry, in, gradient));
    }
  }
}

TEST_F(KernelRowwiseTest, Transposes) {
  for (const TransposeGeometry& geometry :
       {TransposeGeometry{3, {5, 7, 2}, {2, 0, 1}}, TransposeGeometry{2, {4, 3, 9}, {1, 2, 0}},
        TransposeGeometry{1, {1, 33, 65}, {0, 2, 1}}, TransposeGeometry{4, {2, 3, 4}, {2, 1, 0}},
        TransposeGeometry{700, {3, 1, 2}, {1, 0, 2}}}) {
    const Floats in = RandomFloats(geometry.size(), 13);
    GpuArray<float> x(in), y(Floats(in.size()));
    ASSERT_EQ(LaunchTranspose(nullptr, geometry, x.data(), y.data()), cudaSuccess);
    EXPECT_EQ(y.Read(), reference::Transpose(geometry, in));
  }
}

TEST_F(KernelRowwiseTest, LaunchesNothingForNoElements) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{0, 3}, {3, 0}}) {
    EXPECT_EQ(LaunchScaleRows(nullptr, rows, columns, nullptr, nullptr), cudaSuccess);
    EXPECT_EQ(LaunchAddRowVector(nullptr, rows, columns, 1, nullptr, nullptr), cudaSuccess);
    EXPECT_EQ(LaunchAddScaledRows(nullptr, rows, columns, 1, nullptr, nullptr, 0, nullptr),
              cudaSuccess);
  }
  for (const PairGeometry& geometry : {PairGeometry{0, 3, 2}, PairGeometry{3, 0, 2, true}}) {
    EXPECT_EQ(LaunchPairwiseDots(nullptr, geometry, nullptr, nullptr), cudaSuccess);
    EXPECT_EQ(LaunchPairwiseDotsBackward(nullptr, geometry, nullptr, nullptr, nullptr),
              cudaSuccess);
  }
  EXPECT_EQ(LaunchTranspose(nullptr, {0, {2, 3, 4}, {2, 1, 0}}, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 0);
}

}  // namespace
}  // namespace keelson::cuda
