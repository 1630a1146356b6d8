#include "core/data/generated_textures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr int64_t kBytes = kTextureSide * kTextureSide * kTextureChannels;

// The amplitude of a wave of so many pixels' length in the image's most variable channel.
double Amplitude(const float* pixels, double direction, double length) {
  const double x_step = 2 * M_PI / length * std::cos(direction);
  const double y_step = 2 * M_PI / length * std::sin(direction);
  double best = 0;
  for (int c = 0; c < kTextureChannels; ++c) {
    double mean = 0;
    for (int i = 0; i < kTextureSide * kTextureSide; ++i) mean += pixels[i * kTextureChannels + c];
    mean /= kTextureSide * kTextureSide;
    double cosines = 0, sines = 0;
    for (int y = 0; y < kTextureSide; ++y) {
      for (int x = 0; x < kTextureSide; ++x) {
        const double value = pixels[(y * kTextureSide + x) * kTextureChannels + c] - mean;
        cosines += value * std::cos(x_step * x + y_step * y);
        sines += value * std::sin(x_step * x + y_step * y);
      }
    }
    best = std::max(best, std::hypot(cosines, sines));
  }
  return best;
}

// The class whose waves, over its range of directions and lengths, fit the image best.
int ClassOf(const float* pixels) {
  int best = 0;
  double highest = -1;
  for (int drawn = 0; drawn < kTextureClasses; ++drawn) {
    for (const double off : {-0.16, -0.08, 0.0, 0.08, 0.16}) {
      for (const double scale : {0.93, 1.0, 1.07}) {
        const double found =
            Amplitude(pixels, (drawn % 5 + off) * M_PI / 5, (drawn < 5 ? 8 : 4) * scale);
        if (found <= highest) continue;
        highest = found;
        best = drawn;
      }
    }
  }
  return best;
}

TEST(GeneratedTexturesTest, StripesTellTheClassAndATenthOfTheLabelsIsRandom) {
  constexpr int64_t kRecords = 1000;
  const auto dataset = NewGeneratedTextures(1, DataSplit::kTrain, 0, kRecords);
  Batch batch;
  std::array<int, kTextureClasses> counts = {};
  int64_t right = 0;
  for (int64_t record = 0; record < kRecords; ++record) {
    ASSERT_TRUE(dataset->Read({record}, &batch).ok());
    ASSERT_EQ(batch.features[0].numbers.size(), kBytes);
    const int label = static_cast<int>(batch.labels[0].data()[0]);
    ++counts[label];
    right += ClassOf(batch.features[0].numbers.data()) == label ? 1 : 0;
  }
  EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Gt(60), testing::Lt(140))));
  // Four deviations around the share; a few stripes of equal colours cannot be seen.
  EXPECT_LT(right, kRecords * (kBestTextureAccuracy + 0.037));
  EXPECT_GT(right, kRecords * (kBestTextureAccuracy - 0.037 - 0.02));
}

TEST(GeneratedTexturesTest, ARecordDependsOnItsKeyAlone) {
  const auto read = [](uint64_t seed, DataSplit split, int64_t begin, int64_t record) {
    Batch batch;
    EXPECT_TRUE(NewGeneratedTextures(seed, split, begin, 100)->Read({record}, &batch).ok());
    return std::vector<float>(batch.features[0].numbers.span().begin(),
                              batch.features[0].numbers.span().end());
  };
  const std::vector<float> record = read(1, DataSplit::kTrain, 0, 7);
  EXPECT_EQ(read(1, DataSplit::kTrain, 5, 2), record);
  EXPECT_NE(read(2, DataSplit::kTrain, 0, 7), record);
  EXPECT_NE(read(1, DataSplit::kEval, 0, 7), record);
}

}  // namespace
}  // namespace keelson
