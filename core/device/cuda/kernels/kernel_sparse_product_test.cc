#include <cstdint>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "testing/device/kernel_testing.h"
#include "testing/device/reference_operations.h"
#include "testing/device/sparse_testing.h"

namespace keelson::cuda {
namespace {

using KernelSparseProductTest = KernelTest;
using Floats = std::vector<float>;

// A matrix on the GPU, in arrays with room for more rows, whose content is garbage.
class GpuSparseMatrix {
 public:
  GpuSparseMatrix(const reference::SparseMatrix& a, int64_t capacity)
      : capacity_(capacity),
        stored_({static_cast<int32_t>(a.rows.size())}),
        rows_(Padded(a.rows, capacity)),
        offsets_(Padded(a.offsets, capacity + 1)),
        columns_(a.columns),
        coefficients_(a.coefficients) {}

  SparseArrays arrays() {
    return {capacity_,       stored_.data(),  rows_.data(),
            offsets_.data(), columns_.data(), coefficients_.data()};
  }

 private:
  static std::vector<int32_t> Padded(std::vector<int32_t> values, int64_t size) {
    values.resize(size, 1 << 30);
    return values;
  }

  const int64_t capacity_;
  GpuArray<int32_t> stored_, rows_, offsets_, columns_;
  GpuArray<float> coefficients_;
};

// Widths around a pack, a warp and a block, in packs and in single columns.
TEST_F(KernelSparseProductTest, MultipliesAlignedAndNot) {
  constexpr int64_t kColumns = 50;
  for (int64_t width : {1, 2, 3, 4, 5, 8, 12, 16, 31, 32, 33, 64, 127, 128, 132, 257, 1024, 1028}) {
    for (size_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << "width " << width << " at " << offset);
      const auto a = RandomSparseMatrix(9, kColumns, 20, static_cast<uint64_t>(width));
      const Floats x = RandomFloats(kColumns * width, 1);
      const Floats before = RandomFloats((a.rows.back() + 3) * width, 2);
      GpuSparseMatrix matrix(a, 15);
      for (const float beta : {0.0f, 1.0f, -0.5f}) {
        GpuArray<float> in(x, offset), y(before, offset);
        ASSERT_EQ(LaunchMultiplySparse(nullptr, matrix.arrays(), width, in.data(), beta, y.data()),
                  cudaSuccess);
        ExpectClose(y.Read(), reference::MultiplySparse(a, width, x, beta, before));
      }
    }
  }
}

// More rows than a launch has groups of threads: 8192 blocks of one group each.
TEST_F(KernelSparseProductTest, TakesMoreThanOneRound) {
  constexpr int64_t kWidth = 257, kStored = 8200;
  reference::SparseMatrix a;
  for (int32_t k = 0; k < kStored; ++k) {
    a.rows.push_back(k);
    a.columns.push_back(k % 3);
    a.coefficients.push_back(static_cast<float>(k));
    a.offsets.push_back(k + 1);
  }
  const Floats x = RandomFloats(3 * kWidth, 3);
  GpuSparseMatrix matrix(a, kStored);
  GpuArray<float> in(x), y(Poison(kStored * kWidth));
  ASSERT_EQ(LaunchMultiplySparse(nullptr, matrix.arrays(), kWidth, in.data(), 0, y.data()),
            cudaSuccess);
  ExpectClose(y.Read(), reference::MultiplySparse(a, kWidth, x, 0, Poison(kStored * kWidth)));
}

TEST_F(KernelSparseProductTest, WritesNothingWithoutStoredRows) {
  const Floats before = RandomFloats(40, 4);
  GpuSparseMatrix matrix(reference::SparseMatrix(), 10);
  GpuArray<float> x(Poison(4)), y(before);
  ASSERT_EQ(LaunchMultiplySparse(nullptr, matrix.arrays(), 4, x.data(), 0, y.data()), cudaSuccess);
  EXPECT_EQ(y.Read(), before);
}

TEST_F(KernelSparseProductTest, LaunchesNothingWithoutCapacityOrWidth) {
  EXPECT_EQ(LaunchMultiplySparse(nullptr, {}, 4, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchMultiplySparse(nullptr, {.capacity = 5}, 0, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 0);
}

}  // namespace
}  // namespace keelson::cuda
