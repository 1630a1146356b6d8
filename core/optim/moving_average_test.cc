// The rule of variables that are not trained.
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/optim/optim_testing.h"
#include "core/optim/optimizer.h"
#include "core/wire/simd_targets_testing.h"
#include "core/wire/value_codec.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

void Update(float decay, const EncodedGradient& sample, std::vector<float>* values,
            float learning_rate = 0.1f, int64_t update = 0) {
  const std::unique_ptr<Optimizer> average = CreateMovingAverage(decay);
  average->Update({*values, {}, sample, absl::MakeSpan(*values), {}, learning_rate, update});
}

TEST(MovingAverageTest, HasNoSlotsAndNoOtherState) {
  const std::unique_ptr<Optimizer> average = CreateMovingAverage(0.9f);
  EXPECT_THAT(average->slots(), IsEmpty());
  EXPECT_THAT(average->ScalarState(7), IsEmpty());
  EXPECT_FALSE(average->reads_worker_values());
}

TEST(MovingAverageTest, EqualsFloat64) {
  for (const float decay : {0.0f, 0.5f, 0.9f, 0.99f, 0.999f}) {
    std::vector<float> values = RandomVector(37, 1);
    std::vector<double> reference(values.begin(), values.end());
    for (uint32_t t = 0; t < 500; ++t) {
      const std::vector<float> sample = RandomVector(37, 2 + t);
      Update(decay, EncodedGradient(sample.data()), &values);
      for (size_t i = 0; i < values.size(); ++i) {
        reference[i] = double{decay} * reference[i] + (1 - double{decay}) * sample[i];
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], reference[i], 2e-6 * (1 + std::abs(reference[i]))) << decay;
    }
  }
}

TEST(MovingAverageTest, WithoutDecayTheSampleIsTheValue) {
  std::vector<float> values = {1e8f, -3, 0};
  const std::vector<float> sample = {0.1f, -0.0f, 7};
  Update(0, EncodedGradient(sample.data()), &values);
  EXPECT_THAT(values, ElementsAre(0.1f, 0, 7));
}

TEST(MovingAverageTest, LearningRateAndNumberOfUpdatesMakeNoDifference) {
  const std::vector<float> sample = RandomVector(20, 3);
  std::vector<float> expected = RandomVector(20, 4);
  Update(0.9f, EncodedGradient(sample.data()), &expected);
  for (const float learning_rate : {0.0f, 100.0f}) {
    std::vector<float> values = RandomVector(20, 4);
    Update(0.9f, EncodedGradient(sample.data()), &values, learning_rate, /*update=*/1000);
    EXPECT_EQ(values, expected);
  }
}

TEST(MovingAverageTest, EveryFormatAndProcessorGivesTheSameBits) {
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    for (size_t n = 0; n <= 70; ++n) {
      std::vector<uint8_t> bytes(n * ElementBytes(format));
      EncodeElements(format, RandomVector(n, 5), bytes.data());
      std::vector<float> decoded(n);
      DecodeElements(format, bytes.data(), absl::MakeSpan(decoded));
      std::vector<float> expected = RandomVector(n, 6);
      const float decay = 0.99f;
      for (size_t i = 0; i < n; ++i) {
        const volatile float kept = decay * expected[i];  // rounded by itself
        const volatile float added = (1 - decay) * decoded[i];
        expected[i] = kept + added;
      }
      ForEachInstructionSet([&] {
        std::vector<float> values = RandomVector(n, 6);
        Update(decay, EncodedGradient(format, bytes.data()), &values);
        EXPECT_EQ(Bits(values), Bits(expected)) << n;
      });
    }
  }
}

TEST(MovingAverageTest, ASampleThatIsNoNumberSpreadsToItsElementOnly) {
  std::vector<float> sample(40, 1.0f);
  sample[17] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(40, 1.0f);
  Update(0.5f, EncodedGradient(sample.data()), &values);
  EXPECT_TRUE(std::isnan(values[17]));
  values.erase(values.begin() + 17);
  EXPECT_THAT(values, Each(1.0f));
}

}  // namespace
}  // namespace keelson
