#include "core/data/generated_regression.h"

#include <cmath>

namespace keelson {
namespace {

float TargetWithoutNoise(const float* x) {
  const float from_half = x[2] - 0.5f;
  return 2 * std::sin(kPi * x[0] * x[1]) + 4 * from_half * from_half + 2 * x[3] + x[4];
}

class GeneratedRegression : public Dataset {
 public:
  GeneratedRegression(uint64_t seed, DataSplit split, int64_t begin, int64_t end)
      : seed_(seed), split_(split), begin_(begin), num_records_(end - begin) {}

  int64_t num_records() const override { return num_records_; }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto n = static_cast<int64_t>(records.size());
    batch->features.resize(1);
    batch->labels.resize(1);
    Resize(n, Shape({kRegressionFeatures}), &batch->features[0].numbers);
    Resize(n, Shape(), &batch->labels[0]);
    for (int64_t i = 0; i < n; ++i) {
      if (records[i] < 0 || records[i] >= num_records_) return NoRecord(records[i], num_records_);
      float* const x = batch->features[0].numbers.data() + i * kRegressionFeatures;
      RecordRandom random("generated regression", seed_, split_, begin_ + records[i]);
      for (int64_t f = 0; f < kRegressionFeatures; ++f) x[f] = random.Uniform(-1, 1);
      batch->labels[0].data()[i] = TargetWithoutNoise(x) + kRegressionNoise * random.Normal();
    }
    return absl::OkStatus();
  }

 private:
  const uint64_t seed_;
  const DataSplit split_;
  const int64_t begin_;
  const int64_t num_records_;
};

}  // namespace

std::unique_ptr<Dataset> NewGeneratedRegression(uint64_t seed, DataSplit split, int64_t begin,
                                                int64_t end) {
  return std::make_unique<GeneratedRegression>(seed, split, begin, end);
}

}  // namespace keelson
