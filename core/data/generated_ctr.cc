#include "core/data/generated_ctr.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/value_hash.h"

namespace keelson {
namespace {

std::string FieldName(size_t field) { return absl::StrCat("field", field); }

class GeneratedCtr : public Dataset {
 public:
  GeneratedCtr(CtrColumns columns, std::shared_ptr<const CtrTruth> truth, uint64_t seed,
               DataSplit split, int64_t begin, int64_t end)
      : columns_(std::move(columns)),
        truth_(std::move(truth)),
        seed_(seed),
        split_(split),
        begin_(begin),
        num_records_(end - begin) {}

  int64_t num_records() const override { return num_records_; }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto n = static_cast<int64_t>(records.size());
    batch->features.resize(columns_.features.size());
    for (FeatureValues& feature : batch->features) feature.ids.resize(n);
    batch->labels.resize(columns_.clicked ? 1 : 0);
    for (Tensor& labels : batch->labels) Resize(n, Shape(), &labels);
    for (int64_t i = 0; i < n; ++i) {
      if (records[i] < 0 || records[i] >= num_records_) return NoRecord(records[i], num_records_);
      Draw(records[i], i, batch);
    }
    return absl::OkStatus();
  }

 private:
  void Draw(int64_t record, int64_t row, Batch* batch) const {
    RecordRandom random("generated ctr", seed_, split_, begin_ + record);
    CtrValues values;
    for (uint32_t& value : values) value = truth_->ValueAt(random.Bits());
    for (size_t k = 0; k < columns_.features.size(); ++k) {
      const CtrColumns::Feature& feature = columns_.features[k];
      const uint64_t hash = CtrTruth::HashOf(feature.field, values[feature.field]);
      batch->features[k].ids[row] = IdOfHash(hash, feature.num_ids);
    }
    if (!columns_.clicked) return;
    const float probability = 1 / (1 + std::exp(-truth_->LogitOf(values)));
    batch->labels.front().data()[row] = random.Uniform(0, 1) < probability ? 1.0f : 0.0f;
  }

  const CtrColumns columns_;
  const std::shared_ptr<const CtrTruth> truth_;
  const uint64_t seed_;
  const DataSplit split_;
  const int64_t begin_;
  const int64_t num_records_;
};

absl::Status NotCtr(const std::string& expected, const std::string& found) {
  return absl::InvalidArgumentError(
      absl::StrCat("generated ctr: expected ", expected, ", found ", found));
}

absl::StatusOr<CtrColumns::Feature> CtrFeatureOf(const FeatureSpec& feature) {
  for (size_t field = 0; field < kCtrFields; ++field) {
    if (feature.name != FieldName(field) || feature.kind != FeatureKind::kId) continue;
    return CtrColumns::Feature{field, feature.num_ids};
  }
  return NotCtr(absl::StrCat("the features \"field0\" to \"field", kCtrFields - 1, "\", ids"),
                absl::StrCat("\"", feature.name, "\", ", feature.FormText()));
}

}  // namespace

CtrTruth::CtrTruth() {
  constexpr float kWeightDeviation = 0.6f, kVectorDeviation = 0.25f;
  values_.reserve(kCtrFields * kCtrValues);
  for (size_t field = 0; field < kCtrFields; ++field) {
    for (uint32_t value = 0; value < kCtrValues; ++value) {
      RecordRandom random("generated ctr: values", field, DataSplit::kTrain, value);
      Value& drawn = values_.emplace_back();
      drawn.weight = kWeightDeviation * random.Normal();
      for (float& number : drawn.vector) number = kVectorDeviation * random.Normal();
    }
  }
  constexpr double kExponent = 1.05;
  std::vector<double> sums = {0};
  for (uint32_t value = 0; value < kCtrValues; ++value) {
    sums.push_back(sums.back() + std::pow(value + 1.0, -kExponent));
  }
  for (uint32_t value = 0; value < kCtrValues; ++value) {
    below_.push_back(static_cast<uint32_t>(0x1p32 * sums[value] / sums.back()));
  }
}

uint32_t CtrTruth::ValueAt(uint32_t uniform) const {
  return static_cast<uint32_t>(std::upper_bound(below_.begin(), below_.end(), uniform) -
                               below_.begin() - 1);
}

float CtrTruth::WeightsOf(const CtrValues& values) const {
  float sum = -2;
  for (size_t field = 0; field < kCtrFields; ++field) sum += At(field, values[field]).weight;
  return sum;
}

float CtrTruth::LogitOf(const CtrValues& values) const {
  // The products of all pairs are half of the squared sum without the squares.
  float products = 0;
  for (size_t k = 0; k < kVectorNumbers; ++k) {
    float sum = 0, squares = 0;
    for (size_t field = 0; field < kCtrFields; ++field) {
      const float number = At(field, values[field]).vector[k];
      sum += number;
      squares += number * number;
    }
    products += (sum * sum - squares) / 2;
  }
  return WeightsOf(values) + products;
}

uint64_t CtrTruth::HashOf(size_t field, uint32_t value) {
  std::array<char, sizeof(uint64_t)> bytes = {};
  for (size_t i = 0; i < sizeof(value); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return HashValue({bytes.data(), bytes.size()}, FieldSalt(FieldName(field)));
}

absl::StatusOr<CtrColumns> CtrColumnsOf(const RecordSchema& schema) {
  CtrColumns columns;
  for (const FeatureSpec& feature : schema.features) {
    ASSIGN_OR_RETURN(const CtrColumns::Feature known, CtrFeatureOf(feature));
    columns.features.push_back(known);
  }
  for (const LabelSpec& label : schema.labels) {
    const bool fits = label.name == "clicked" && label.num_classes == 2 && !label.weighs;
    if (schema.labels.size() == 1 && fits) continue;
    return NotCtr("the label \"clicked\", 0 or 1",
                  absl::StrCat("\"", label.name, "\" of ", label.num_classes, " classes",
                               label.weighs ? " as weights" : ""));
  }
  columns.clicked = !schema.labels.empty();
  return columns;
}

std::unique_ptr<Dataset> NewGeneratedCtr(CtrColumns columns, std::shared_ptr<const CtrTruth> truth,
                                         uint64_t seed, DataSplit split, int64_t begin,
                                         int64_t end) {
  return std::make_unique<GeneratedCtr>(std::move(columns), std::move(truth), seed, split, begin,
                                        end);
}

}  // namespace keelson
