#include <cmath>
#include <limits>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "core/wire/value_codec.h"
#include "core/wire/value_codec_testing.h"
#include "testing/device/kernel_testing.h"
#include "testing/device/wire_codec_testing.h"

namespace keelson::cuda {
namespace {

using KernelCodecTest = KernelTest;
using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;

constexpr WireFormat kShortFormats[] = {WireFormat::kFloat16, WireFormat::kBfloat16};

std::vector<std::vector<int64_t>> BlockSizes() {
  return {{1},          {4},    {1023},     {1024},
          {1025},       {5003}, {1, 1, 1},  {3, 5, 2048, 31, 1025},
          {1024, 4096}, {257},  {2, 6, 130}};
}

absl::Span<const float> ElementsOf(const WireBlock& block, const Floats& x) {
  return absl::MakeConstSpan(x).subspan(block.first_element, block.num_elements);
}

TEST_F(KernelCodecTest, EncodesShortFormatsBitByBit) {
  for (WireFormat format : kShortFormats) {
    for (const auto& sizes : BlockSizes()) {
      const WireLayout layout = LayoutOf(format, sizes);
      GpuTables tables(layout);
      const size_t n = layout.num_elements;
      for (const Floats& x : {RandomBits(n, 1), RandomVector(n, 2)}) {
        for (size_t offset : {0, 1}) {
          GpuArray<float> gradient(x, offset);
          GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
          ASSERT_EQ((format == WireFormat::kFloat16 ? LaunchEncodeFloat16 : LaunchEncodeBfloat16)(
                        nullptr, tables.tables(), gradient.data(), to.data()),
                    cudaSuccess);
          std::vector<Bytes> expected;
          for (const WireBlock& block : layout.blocks) {
            expected.emplace_back(EncodedBytes(format, block.num_elements));
            EncodeElements(format, ElementsOf(block, x), expected.back().data());
          }
          ExpectSameBlocks(layout, to.Read(), expected);
        }
      }
    }
  }
}

// Thread blocks take more than one tile each.
TEST_F(KernelCodecTest, EncodesMoreTilesThanALaunchHasBlocks) {
  const WireLayout layout = LayoutOf(WireFormat::kBfloat16, std::vector<int64_t>(9000, 1));
  GpuTables tables(layout);
  const Floats x = RandomVector(9000, 11);
  GpuArray<float> gradient(x);
  GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
  ASSERT_EQ(LaunchEncodeBfloat16(nullptr, tables.tables(), gradient.data(), to.data()),
            cudaSuccess);
  std::vector<Bytes> expected(9000, Bytes(2));
  for (size_t i = 0; i < x.size(); ++i) {
    EncodeElements(WireFormat::kBfloat16, absl::MakeConstSpan(&x[i], 1), expected[i].data());
  }
  ExpectSameBlocks(layout, to.Read(), expected);
}

TEST_F(KernelCodecTest, DecodesShortFormatsBitByBit) {
  for (WireFormat format : kShortFormats) {
    for (int64_t n :
         {int64_t{1}, int64_t{7}, int64_t{8}, int64_t{9}, int64_t{1025}, int64_t{65536}}) {
      Bytes bytes(2 * n);
      for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(i % 2 == 0 ? i / 2 : i / 512);  // all codes
      }
      Floats expected(n);
      DecodeElements(format, bytes.data(), absl::MakeSpan(expected));
      for (size_t offset : {0, 1}) {
        GpuArray<uint8_t> from(bytes);
        GpuArray<float> to(Poison(n), offset);
        ASSERT_EQ((format == WireFormat::kFloat16 ? LaunchDecodeFloat16 : LaunchDecodeBfloat16)(
                      nullptr, n, from.data(), to.data()),
                  cudaSuccess);
        EXPECT_EQ(Bits(to.Read()), Bits(expected));
      }
    }
  }
}

// What the CPU's codec makes of a gradient, and of the residual.
std::vector<Bytes> Int8Blocks(const WireLayout& layout, const Floats& x, Floats* residual) {
  std::vector<Bytes> blocks;
  for (const WireBlock& block : layout.blocks) {
    blocks.emplace_back(EncodedBytes(WireFormat::kInt8, block.num_elements));
    EncodeInt8(ElementsOf(block, x),
               absl::MakeSpan(*residual).subspan(block.first_element, block.num_elements),
               blocks.back().data());
  }
  return blocks;
}

// Gradients of some steps.
std::vector<Floats> Gradients(size_t n) {
  Floats subnormal = RandomVector(n, 4), huge = RandomVector(n, 5), bits = RandomBits(n, 6);
  for (float& x : subnormal) x *= 1e-43f;
  for (float& x : huge) x *= 1e38f;
  huge[n / 2] = std::numeric_limits<float>::max();
  return {RandomVector(n, 3),
          RandomVector(n, 7),
          Floats(n, 0.0f),
          subnormal,
          bits,
          RandomVector(n, 8),
          huge,
          RandomVector(n, 9)};
}

TEST_F(KernelCodecTest, EncodesInt8BitByBitOverSteps) {
  for (const auto& sizes : BlockSizes()) {
    const WireLayout layout = LayoutOf(WireFormat::kInt8, sizes);
    GpuTables tables(layout);
    const size_t n = layout.num_elements;
    for (size_t offset : {0, 1}) {
      Floats residual_of_cpu(n, 0.0f);
      GpuArray<float> residual(residual_of_cpu, offset), gate({0.5f});
      for (const Floats& x : Gradients(n)) {
        GpuArray<float> gradient(x, offset);
        GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
        ASSERT_EQ(LaunchEncodeInt8(nullptr, tables.tables(), gradient.data(), gate.data(),
                                   residual.data(), to.data()),
                  cudaSuccess);
        const auto expected = Int8Blocks(layout, x, &residual_of_cpu);
        ExpectSameBlocks(layout, to.Read(), expected);
        ASSERT_EQ(Bits(residual.Read()), Bits(residual_of_cpu));
      }
    }
  }
}

// Starting from zeros, each gradient by itself: scales that steps would not reach.
TEST_F(KernelCodecTest, EncodesInt8OfEachKindBitByBit) {
  const WireLayout layout = LayoutOf(WireFormat::kInt8, {1024, 700});
  GpuTables tables(layout);
  for (const Floats& x : Gradients(1724)) {
    Floats residual_of_cpu(x.size(), 0.0f);
    GpuArray<float> residual(residual_of_cpu), gradient(x);
    GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
    ASSERT_EQ(LaunchEncodeInt8(nullptr, tables.tables(), gradient.data(), nullptr, residual.data(),
                               to.data()),
              cudaSuccess);
    ExpectSameBlocks(layout, to.Read(), Int8Blocks(layout, x, &residual_of_cpu));
    ASSERT_EQ(Bits(residual.Read()), Bits(residual_of_cpu));
  }
}

TEST_F(KernelCodecTest, AClosedGateKeepsTheResidual) {
  const WireLayout layout = LayoutOf(WireFormat::kInt8, {1030});
  GpuTables tables(layout);
  const Floats before = RandomVector(1030, 10);
  for (float loss : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    GpuArray<float> residual(before), gradient(Floats(1030, std::nanf(""))), gate({loss});
    GpuArray<uint8_t> to(Bytes(layout.bytes, 0xee));
    ASSERT_EQ(LaunchEncodeInt8(nullptr, tables.tables(), gradient.data(), gate.data(),
                               residual.data(), to.data()),
              cudaSuccess);
    EXPECT_EQ(Bits(residual.Read()), Bits(before));
  }
}

TEST_F(KernelCodecTest, LaunchesNothingForNoElements) {
  const WireTables none = {};
  EXPECT_EQ(LaunchEncodeFloat16(nullptr, none, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchEncodeBfloat16(nullptr, none, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchEncodeInt8(nullptr, none, nullptr, nullptr, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchEncodeTopK(nullptr, none, nullptr, nullptr, nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_EQ(LaunchDecodeFloat16(nullptr, 0, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchDecodeBfloat16(nullptr, 0, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 0);
}

}  // namespace
}  // namespace keelson::cuda
