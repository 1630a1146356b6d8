#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "core/wire/value_codec.h"
#include "core/wire/value_codec_testing.h"
#include "testing/device/kernel_testing.h"
#include "testing/device/wire_codec_testing.h"

namespace keelson::cuda {
namespace {

using KernelTopKTest = KernelTest;
using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;

// What the CPU's codec makes of a gradient, and of the residual.
std::vector<Bytes> TopKBlocks(const WireLayout& layout, const Floats& x, Floats* residual) {
  std::vector<Bytes> blocks;
  for (const WireBlock& block : layout.blocks) {
    const size_t first = block.first_element;
    const size_t n = block.num_elements;
    std::string bytes;
    EncodeTopK(absl::MakeConstSpan(x).subspan(first, n), block.top_k_count,
               absl::MakeSpan(*residual).subspan(first, n), &bytes);
    blocks.emplace_back(bytes.begin(), bytes.end());
  }
  return blocks;
}

// Encodes the gradients one after the other, and compares each with the CPU's codec.
void ExpectCpusBits(const WireLayout& layout, const std::vector<Floats>& gradients,
                    size_t offset = 0) {
  GpuTables tables(layout);
  const size_t n = layout.num_elements;
  Floats residual_of_cpu(n, 0.0f);
  GpuArray<float> residual(residual_of_cpu, offset);
  GpuArray<uint8_t> scratch(Bytes(EncodeTopKScratch(tables.tables()), 0xcc));
  for (const Floats& x : gradients) {
    GpuArray<float> gradient(x, offset), gate({1.0f});
    GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
    ASSERT_EQ(LaunchEncodeTopK(nullptr, tables.tables(), gradient.data(), gate.data(),
                               scratch.data(), residual.data(), to.data()),
              cudaSuccess);
    const auto expected = TopKBlocks(layout, x, &residual_of_cpu);
    ExpectSameBlocks(layout, to.Read(), expected);
    ASSERT_EQ(Bits(residual.Read()), Bits(residual_of_cpu));
  }
}

// Few blocks of a few tiles, which one launch encodes, and more.
std::vector<std::vector<int64_t>> TopKBlockSizes() {
  return {{1},
          {5},
          {1023},
          {1024},
          {1025},
          {4096},
          {4097},
          {9000},
          {3, 7},
          {1, 1},
          {1, 1025, 3000, 2, 4096},
          {9000, 5, 1024}};
}

Floats WithNans(Floats x) {
  for (size_t i = 0; i < x.size(); i += 3) x[i] = std::numeric_limits<float>::quiet_NaN();
  return x;
}

// Rounds to few values, so that many are equal to the threshold.
Floats Rounded(Floats x) {
  for (float& value : x) value = std::round(2 * value) / 2;
  return x;
}

TEST_F(KernelTopKTest, SelectsAsTheCpuOverSteps) {
  for (const auto& sizes : TopKBlockSizes()) {
    for (auto [keep_one_of, offset] : {std::pair<int64_t, size_t>{1, 0}, {10, 0}, {100, 1}}) {
      const WireLayout layout = LayoutOf(WireFormat::kTopK, sizes, keep_one_of);
      SCOPED_TRACE(testing::Message() << sizes.size() << " blocks, the first of " << sizes[0]
                                      << ", one of " << keep_one_of);
      const size_t n = layout.num_elements;
      ExpectCpusBits(layout, {RandomVector(n, 1), RandomVector(n, 2), Floats(n, 0.0f)}, offset);
    }
  }
}

TEST_F(KernelTopKTest, KeepsTheTiesInFront) {
  for (const auto& sizes : TopKBlockSizes()) {
    const WireLayout layout = LayoutOf(WireFormat::kTopK, sizes, 3);
    const size_t n = layout.num_elements;
    ExpectCpusBits(layout, {Rounded(RandomVector(n, 3)), Rounded(RandomVector(n, 4)),
                            Floats(n, -1.0f), Floats(n, 1.0f)});
  }
}

// More than one thread block looks at in one round.
TEST_F(KernelTopKTest, KeepsTheTiesInFrontOfManyTiles) {
  constexpr int64_t kElements = 300 * kWireTileElements + 5;
  const WireLayout layout = LayoutOf(WireFormat::kTopK, {kElements}, 3);
  ExpectCpusBits(layout, {Rounded(RandomVector(kElements, 12))});
}

TEST_F(KernelTopKTest, SelectsAmongAllBits) {
  for (const auto& sizes : TopKBlockSizes()) {
    const WireLayout layout = LayoutOf(WireFormat::kTopK, sizes, 4);
    const size_t n = layout.num_elements;
    ExpectCpusBits(layout, {RandomBits(n, 5)});
    ExpectCpusBits(layout, {WithNans(RandomVector(n, 6)), RandomVector(n, 7)});
  }
}

// Infinities of both signs: their sum is NaN, whose bits are ranked and sent.
TEST_F(KernelTopKTest, ANanOfTheSumHasTheCpusBits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t size : {8, 6000}) {
    const WireLayout layout = LayoutOf(WireFormat::kTopK, {size}, size);
    ExpectCpusBits(layout, {Floats(size, kInfinity), Floats(size, -kInfinity), Floats(size, 1.0f)});
  }
}

TEST_F(KernelTopKTest, AClosedGateKeepsTheResidual) {
  for (int64_t size : {100, 6000}) {
    const WireLayout layout = LayoutOf(WireFormat::kTopK, {size});
    GpuTables tables(layout);
    const Floats before = RandomVector(size, 8);
    for (float loss : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      GpuArray<float> residual(before), gradient(Floats(size, std::nanf(""))), gate({loss});
      GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
      GpuArray<uint8_t> scratch(Bytes(EncodeTopKScratch(tables.tables()), 0xcc));
      ASSERT_EQ(LaunchEncodeTopK(nullptr, tables.tables(), gradient.data(), gate.data(),
                                 scratch.data(), residual.data(), to.data()),
                cudaSuccess);
      EXPECT_EQ(Bits(residual.Read()), Bits(before));
    }
  }
}

TEST_F(KernelTopKTest, EncodesWithoutAGate) {
  const WireLayout layout = LayoutOf(WireFormat::kTopK, {50});
  GpuTables tables(layout);
  const Floats x = RandomVector(50, 9);
  Floats residual_of_cpu(50, 0.0f);
  GpuArray<float> residual(residual_of_cpu), gradient(x);
  GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
  ASSERT_EQ(LaunchEncodeTopK(nullptr, tables.tables(), gradient.data(), nullptr, nullptr,
                             residual.data(), to.data()),
            cudaSuccess);
  ExpectSameBlocks(layout, to.Read(), TopKBlocks(layout, x, &residual_of_cpu));
}

TEST_F(KernelTopKTest, SmallLayoutsAreOneLaunch) {
  const WireLayout layout = LayoutOf(WireFormat::kTopK, {2048, 2048});
  ExpectCpusBits(layout, {RandomVector(4096, 10)});
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 1);
}

// A failure of any of the launches is the result.
TEST_F(KernelTopKTest, TellsOfALaunchThatFails) {
  const WireLayout layout = LayoutOf(WireFormat::kTopK, {6000});
  GpuTables tables(layout);
  GpuArray<float> residual(Floats(6000, 0.0f)), gradient(RandomVector(6000, 11));
  GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
  GpuArray<uint8_t> scratch(Bytes(EncodeTopKScratch(tables.tables())));
  constexpr int kLaunches = 10;  // one of them sets memory
  for (int i = 1; i <= kLaunches; ++i) {
    cuda_emulation::FailCall("*", i, cudaErrorLaunchFailure);
    EXPECT_EQ(LaunchEncodeTopK(nullptr, tables.tables(), gradient.data(), nullptr, scratch.data(),
                               residual.data(), to.data()),
              cudaErrorLaunchFailure)
        << i;
    EXPECT_EQ(cuda_emulation::PendingFaults(), 0);
    cudaGetLastError();
  }
}

}  // namespace
}  // namespace keelson::cuda
