#include "core/data/generated_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "core/data/digit_strokes.h"
#include "core/data/record_order.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using Image = std::array<uint8_t, kDigitPixels>;

Image Draw(uint64_t seed, DataSplit split, int64_t record) {
  Image image;
  DrawDigit(seed, split, record, absl::MakeSpan(image));
  return image;
}

TEST(GeneratedDigitsTest, ARecordDependsOnItsKeyAlone) {
  const Image image = Draw(1, DataSplit::kTrain, 5);
  Draw(1, DataSplit::kTrain, 6);
  EXPECT_EQ(Draw(1, DataSplit::kTrain, 5), image);
  EXPECT_NE(Draw(2, DataSplit::kTrain, 5), image);
  EXPECT_NE(Draw(1, DataSplit::kEval, 5), image);
  EXPECT_NE(Draw(1, DataSplit::kTrain, 6), image);
}

TEST(GeneratedDigitsTest, LabelsAreBalanced) {
  std::array<int, kDigitClasses> counts = {};
  for (int64_t i = 0; i < 10'000; ++i) ++counts[DigitLabel(3, DataSplit::kTrain, i)];
  EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Gt(850), testing::Lt(1150))));
}

TEST(GeneratedDigitsTest, EveryImageHasADigitsWorthOfInk) {
  for (int64_t i = 0; i < 1000; ++i) {
    const Image image = Draw(4, DataSplit::kEval, i);
    const auto bright = std::count_if(image.begin(), image.end(), [](uint8_t p) { return p > 90; });
    EXPECT_GE(bright, 12) << "record " << i;
    EXPECT_LE(bright, 350) << "record " << i;
  }
}

TEST(GeneratedDigitsTest, DatasetIsTheRangeOfTheStream) {
  const auto dataset = NewGeneratedDigits(1, DataSplit::kEval, 100, 110, Shape({28, 28, 1}));
  ASSERT_EQ(dataset->num_records(), 10);
  Batch batch;
  for (int repeat = 0; repeat < 2; ++repeat) {
    ASSERT_TRUE(dataset->Read({7}, &batch).ok());
    EXPECT_EQ(batch.features[0].numbers.shape(), Shape({1, 28, 28, 1}));
    EXPECT_EQ(batch.labels[0].data()[0], DigitLabel(1, DataSplit::kEval, 107));
    const Image image = Draw(1, DataSplit::kEval, 107);
    for (int i = 0; i < kDigitPixels; ++i) {
      ASSERT_EQ(std::lround(batch.features[0].numbers.data()[i] * 255), image[i]);
    }
  }
}

TEST(GeneratedDigitsTest, ThreadsReadTogether) {
  const auto dataset = NewGeneratedDigits(1, DataSplit::kTrain, 0, 100, Shape({784}));
  std::vector<int64_t> records(100);
  std::iota(records.begin(), records.end(), 0);
  std::array<Batch, 4> batches;
  std::vector<std::thread> threads;
  for (Batch& batch : batches) {
    threads.emplace_back([&] { EXPECT_TRUE(dataset->Read(records, &batch).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Batch& batch : batches) {
    EXPECT_EQ(batch.features[0].numbers.span(), batches[0].features[0].numbers.span());
  }
}

TEST(DigitStrokesTest, EveryStyleLiesInTheUnitSquare) {
  for (int digit = 0; digit < kDigitClasses; ++digit) {
    EXPECT_GE(DigitStyles(digit).size(), 2u);
    for (const DigitStyle& style : DigitStyles(digit)) {
      for (const Stroke& stroke : style.strokes) {
        ASSERT_GE(stroke.size(), 2u);
        for (const Point& p : stroke) {
          EXPECT_TRUE(p.x >= 0 && p.x <= 1 && p.y >= 0 && p.y <= 1) << digit;
        }
      }
    }
  }
}

TEST(DigitStrokesTest, SmoothPassesThroughThePoints) {
  const Stroke stroke = {{0, 0}, {1, 0.5f}, {0.2f, 1}};
  const Stroke path = Smooth(stroke, 4);
  ASSERT_EQ(path.size(), 9u);
  for (size_t i = 0; i < stroke.size(); ++i) {
    EXPECT_FLOAT_EQ(path[4 * i].x, stroke[i].x);
    EXPECT_FLOAT_EQ(path[4 * i].y, stroke[i].y);
  }
}

// Softmax regression, one example at a time.
class LinearClassifier {
 public:
  void Train(const float* x, int label, float rate) {
    Scores p = Predict(x);
    const float top = *std::max_element(p.begin(), p.end());
    float sum = 0;
    for (float& v : p) sum += v = std::exp(v - top);
    for (float& v : p) v /= sum;
    p[label] -= 1;
    for (size_t i = 0; i < kDigitPixels; ++i) {
      for (size_t k = 0; k < kDigitClasses; ++k) weights_[i][k] -= rate * x[i] * p[k];
    }
    for (size_t k = 0; k < kDigitClasses; ++k) weights_[kDigitPixels][k] -= rate * p[k];
  }

  double Accuracy(const Batch& batch) const {
    int right = 0;
    for (int64_t i = 0; i < batch.size(); ++i) {
      const Scores s = Predict(batch.features[0].numbers.data() + i * kDigitPixels);
      right += std::max_element(s.begin(), s.end()) - s.begin() == batch.labels[0].data()[i];
    }
    return right / static_cast<double>(batch.size());
  }

 private:
  using Scores = std::array<float, kDigitClasses>;

  Scores Predict(const float* x) const {
    Scores scores = weights_[kDigitPixels];
    for (size_t i = 0; i < kDigitPixels; ++i) {
      for (size_t k = 0; k < kDigitClasses; ++k) scores[k] += x[i] * weights_[i][k];
    }
    return scores;
  }

  std::array<Scores, kDigitPixels + 1> weights_ = {};  // the last row is the bias
};

Batch ReadAll(const Dataset& dataset) {
  std::vector<int64_t> records(dataset.num_records());
  std::iota(records.begin(), records.end(), 0);
  Batch batch;
  EXPECT_TRUE(dataset.Read(records, &batch).ok());
  return batch;
}

TEST(GeneratedDigitsTest, NeitherTrivialNorEasyForALinearClassifier) {
  constexpr int64_t kTrain = 8000, kEval = 2000;
  const Shape shape({kDigitPixels});
  const Batch train = ReadAll(*NewGeneratedDigits(1, DataSplit::kTrain, 0, kTrain, shape));
  const Batch eval = ReadAll(*NewGeneratedDigits(1, DataSplit::kEval, 0, kEval, shape));
  LinearClassifier classifier;
  float rate = 0.01f;
  for (int64_t epoch = 0; epoch < 10; ++epoch, rate *= 0.7f) {
    const RecordOrder order(kTrain, 1, epoch, false);
    for (int64_t position = 0; position < kTrain; ++position) {
      const int64_t i = order.Record(position);
      classifier.Train(train.features[0].numbers.data() + i * kDigitPixels,
                       static_cast<int>(train.labels[0].data()[i]), rate);
    }
  }
  const double accuracy = classifier.Accuracy(eval);
  EXPECT_GT(accuracy, 0.75);
  EXPECT_LT(accuracy, 0.88);
}

}  // namespace
}  // namespace keelson
