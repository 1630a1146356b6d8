#include "core/optim/accumulate.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/optim/optim_testing.h"
#include "core/wire/simd_targets_testing.h"
#include "core/wire/value_codec.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(AccumulateTest, AddsTheWeightedGradient) {
  std::vector<float> sum = {1, 2, -3};
  const std::vector<float> gradient = {0.5f, -1, 8};
  AddWeighted(EncodedGradient(gradient.data()), 10, absl::MakeSpan(sum));
  EXPECT_THAT(sum, ElementsAre(6, -8, 77));
}

TEST(AccumulateTest, DividesEachElement) {
  std::vector<float> x = {6, -9, 1};
  DivideBy(3, absl::MakeSpan(x));
  EXPECT_THAT(x, ElementsAre(2, -3, 1.0f / 3));
}

TEST(AccumulateTest, NothingIsNothing) {
  AddWeighted(EncodedGradient(), 1, {});
  DivideBy(2, {});
}

TEST(AccumulateTest, EveryFormatIsDecodingThenFloat32OnAllProcessors) {
  for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBfloat16}) {
    for (size_t n = 0; n <= 70; ++n) {
      const std::vector<float> gradient = RandomVector(n, 1);
      std::vector<uint8_t> bytes(n * 2);
      EncodeElements(format, gradient, bytes.data());
      std::vector<float> decoded(n);
      DecodeElements(format, bytes.data(), absl::MakeSpan(decoded));
      std::vector<float> expected = RandomVector(n, 2);
      for (size_t i = 0; i < n; ++i) {
        const volatile float product = 0.3f * decoded[i];  // rounded by itself
        expected[i] += product;
      }
      ForEachInstructionSet([&] {
        std::vector<float> sum = RandomVector(n, 2);
        AddWeighted(EncodedGradient(format, bytes.data()), 0.3f, absl::MakeSpan(sum));
        EXPECT_EQ(sum, expected) << n;
      });
    }
  }
}

TEST(AccumulateTest, ASumThatBeginsIsWhatIsAddedToZeros) {
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    for (size_t n = 0; n <= 70; ++n) {
      std::vector<float> gradient = RandomVector(n, 1);
      if (n > 2) gradient[2] = -0.0f;
      std::vector<uint8_t> bytes(n * 4);
      EncodeElements(format, gradient, bytes.data());
      ForEachInstructionSet([&] {
        std::vector<float> expected(n, 0);
        AddWeighted(EncodedGradient(format, bytes.data()), 0.3f, absl::MakeSpan(expected));
        std::vector<float> sum(n, std::nanf(""));
        BeginWeighted(EncodedGradient(format, bytes.data()), 0.3f, absl::MakeSpan(sum));
        EXPECT_EQ(std::memcmp(sum.data(), expected.data(), n * sizeof(float)), 0) << n;
      });
    }
  }
}

TEST(AccumulateTest, Int8HasItsScale) {
  const std::vector<uint8_t> bytes(33, 4);
  ForEachInstructionSet([&] {
    std::vector<float> sum(33, 1);
    AddWeighted(EncodedGradient(WireFormat::kInt8, bytes.data(), 0.5f), 3, absl::MakeSpan(sum));
    EXPECT_THAT(sum, Each(7));
  });
}

}  // namespace
}  // namespace keelson
