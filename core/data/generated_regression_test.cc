#include "core/data/generated_regression.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"

namespace keelson {
namespace {

Batch ReadRegression(const Dataset& dataset) {
  std::vector<int64_t> records(dataset.num_records());
  std::iota(records.begin(), records.end(), 0);
  Batch batch;
  EXPECT_TRUE(dataset.Read(records, &batch).ok());
  return batch;
}

// The formula of the header.
double Expected(const float* x) {
  return 2 * std::sin(kPi * x[0] * x[1]) + 4 * std::pow(x[2] - 0.5, 2) + 2 * x[3] + x[4];
}

TEST(GeneratedRegressionTest, NoiseIsWhatTheBestModelIsWrongBy) {
  const Batch batch = ReadRegression(*NewGeneratedRegression(1, DataSplit::kEval, 0, 40000));
  const Tensor& x = batch.features[0].numbers;
  ASSERT_EQ(x.shape(), Shape({40000, kRegressionFeatures}));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const double noise = batch.labels[0].data()[i] - Expected(x.data() + i * kRegressionFeatures);
    sum += noise;
    squares += noise * noise;
  }
  const auto n = static_cast<double>(batch.size());
  // Four deviations of a mean of 40,000 normal numbers, and of their squares.
  EXPECT_NEAR(sum / n, 0, 4 * kRegressionNoise / 200);
  EXPECT_NEAR(squares / n, kBestRegressionLoss, 4 * kBestRegressionLoss * std::sqrt(2) / 200);
}

TEST(GeneratedRegressionTest, ARecordDependsOnItsKeyAlone) {
  const auto read = [](uint64_t seed, DataSplit split, int64_t begin, int64_t record) {
    Batch batch;
    EXPECT_TRUE(NewGeneratedRegression(seed, split, begin, 100)->Read({record}, &batch).ok());
    return std::vector<float>(batch.features[0].numbers.span().begin(),
                              batch.features[0].numbers.span().end());
  };
  const std::vector<float> record = read(1, DataSplit::kTrain, 0, 7);
  EXPECT_EQ(read(1, DataSplit::kTrain, 5, 2), record);
  EXPECT_NE(read(2, DataSplit::kTrain, 0, 7), record);
  EXPECT_NE(read(1, DataSplit::kEval, 0, 7), record);
  EXPECT_NE(read(1, DataSplit::kTrain, 0, 8), record);
}

TEST(GeneratedRegressionTest, HasNoOtherRecords) {
  Batch batch;
  for (const int64_t record : {-1, 10}) {
    EXPECT_EQ(NewGeneratedRegression(1, DataSplit::kTrain, 0, 10)->Read({record}, &batch).code(),
              absl::StatusCode::kOutOfRange);
  }
}

}  // namespace
}  // namespace keelson
