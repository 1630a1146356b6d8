// Optimizers on every wire format and instruction set; optimizer_test.cc holds what the rules
// compute.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/optim/optim_testing.h"
#include "core/optim/optimizer.h"
#include "core/wire/simd_targets_testing.h"
#include "core/wire/value_codec.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr float kScale = 0.03125f + 1e-6f;  // of int8

std::vector<uint8_t> RandomGradient(WireFormat format, size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(format == WireFormat::kInt8 ? n : n * ElementBytes(format));
  if (format == WireFormat::kInt8) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
  }
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(n);
  for (float& e : x) e = normal(random);
  EncodeElements(format, x, bytes.data());
  return bytes;
}

std::vector<float> Decode(WireFormat format, const std::vector<uint8_t>& bytes, size_t n) {
  std::vector<float> x(n);
  if (format == WireFormat::kInt8) {
    DecodeInt8Group(kScale, bytes.data(), absl::MakeSpan(x));
  } else {
    DecodeElements(format, bytes.data(), absl::MakeSpan(x));
  }
  return x;
}

// Values, then slots.
using Arrays = std::vector<std::vector<float>>;

Arrays RandomState(const Optimizer& optimizer, size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0.1f, 2);
  Arrays arrays(1 + optimizer.slots().size(), std::vector<float>(n));
  for (auto& array : arrays) {
    for (float& e : array) e = uniform(random);
  }
  return arrays;
}

Arrays Updated(const Optimizer& optimizer, Arrays arrays, EncodedGradient gradient) {
  std::vector<const float*> slots_in;
  std::vector<float*> slots_out;
  for (size_t i = 1; i < arrays.size(); ++i) {
    slots_in.push_back(arrays[i].data());
    slots_out.push_back(arrays[i].data());
  }
  optimizer.Update({arrays[0], slots_in, gradient, absl::MakeSpan(arrays[0]),
                    absl::MakeSpan(slots_out), 0.1f, 3});
  return arrays;
}

std::vector<uint32_t> Bits(const Arrays& arrays) {
  std::vector<uint32_t> bits;
  for (const auto& array : arrays) {
    for (const float e : array) bits.push_back(std::bit_cast<uint32_t>(e));
  }
  return bits;
}

class UpdateTest : public testing::TestWithParam<std::tuple<const char*, WireFormat>> {
 protected:
  std::unique_ptr<Optimizer> optimizer_ = Create(std::get<0>(GetParam()));
  WireFormat format_ = std::get<1>(GetParam());
};

TEST_P(UpdateTest, IsDecodingThenTheFloat32UpdateBitByBit) {
  for (size_t n = 0; n <= 70; ++n) {
    const auto seed = static_cast<uint32_t>(n);
    const Arrays before = RandomState(*optimizer_, n, seed);
    const std::vector<uint8_t> gradient = RandomGradient(format_, n, seed);
    const std::vector<float> decoded = Decode(format_, gradient, n);
    const Arrays expected = Updated(*optimizer_, before, EncodedGradient(decoded.data()));
    ForEachInstructionSet([&] {
      EXPECT_EQ(Bits(Updated(*optimizer_, before, EncodedGradient(decoded.data()))),
                Bits(expected));
      // At an odd address, and at the end of an allocation.
      const size_t offset = 1 + 2 * (n % 8);
      std::vector<uint8_t> moved(offset + gradient.size());
      std::copy(gradient.begin(), gradient.end(), moved.begin() + static_cast<ptrdiff_t>(offset));
      const EncodedGradient encoded(format_, moved.data() + offset, kScale);
      EXPECT_EQ(Bits(Updated(*optimizer_, before, encoded)), Bits(expected)) << n;
    });
  }
}

TEST_P(UpdateTest, EveryElementIsTheSameBitsAloneAndInAVector) {
  constexpr size_t kElements = 257;
  const Arrays before = RandomState(*optimizer_, kElements, 1);
  const std::vector<uint8_t> gradient = RandomGradient(format_, kElements, 2);
  const size_t element_bytes = gradient.size() / kElements;
  const Arrays expected =
      Updated(*optimizer_, before, EncodedGradient(format_, gradient.data(), kScale));
  for (size_t i = 0; i < kElements; ++i) {
    Arrays one;
    for (const auto& array : before) one.push_back({array[i]});
    const Arrays after = Updated(
        *optimizer_, one, EncodedGradient(format_, gradient.data() + i * element_bytes, kScale));
    for (size_t k = 0; k < after.size(); ++k) {
      EXPECT_EQ(std::bit_cast<uint32_t>(after[k][0]), std::bit_cast<uint32_t>(expected[k][i]));
    }
  }
}

TEST_P(UpdateTest, NanScaleOrElementsSpreadToTheirElementsOnly) {
  std::vector<float> bad(40, 1.0f);
  bad[17] = std::numeric_limits<float>::quiet_NaN();
  std::vector<uint8_t> bytes(format_ == WireFormat::kInt8 ? 40 : 160, 1);
  float scale = std::numeric_limits<float>::quiet_NaN();
  if (format_ != WireFormat::kInt8) EncodeElements(format_, bad, bytes.data());
  ForEachInstructionSet([&] {
    const Arrays after = Updated(*optimizer_, RandomState(*optimizer_, 40, 3),
                                 EncodedGradient(format_, bytes.data(), scale));
    for (size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(std::isnan(after[0][i]), format_ == WireFormat::kInt8 || i == 17) << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    RulesAndFormats, UpdateTest,
    testing::Combine(testing::Values("sgd {}", "sgd {} clip_value: 0.5 l2: 0.01", "momentum {}",
                                     "momentum { nesterov: true } l2: 0.1",
                                     "adagrad {} clip_value: 1", "rmsprop { momentum: 0.5 }",
                                     "adam {}", "adamw {} clip_value: 0.25",
                                     "ftrl { l1: 0.5 l2: 0.1 l2_shrinkage: 0.1 beta: 1 } l2: 0.1"),
                     testing::Values(WireFormat::kFloat32, WireFormat::kFloat16,
                                     WireFormat::kBfloat16, WireFormat::kInt8)));

}  // namespace
}  // namespace keelson
