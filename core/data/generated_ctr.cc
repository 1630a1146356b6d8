#include "core/data/generated_ctr.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/columns/value_hash.h"

namespace keelson {
namespace {

constexpr size_t kMostFields = 64;

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
    std::array<uint32_t, kMostFields> drawn;
    const absl::Span<uint32_t> values = absl::MakeSpan(drawn).first(truth_->distribution().fields);
    for (uint32_t& value : values) value = truth_->ValueAt(random.Bits());
    for (size_t k = 0; k < columns_.features.size(); ++k) {
      const CtrColumns::Feature& feature = columns_.features[k];
      const uint64_t hash = truth_->HashOf(feature.field, values[feature.field]);
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

absl::StatusOr<CtrColumns::Feature> CtrFeatureOf(const FeatureSpec& feature, size_t fields) {
  for (size_t field = 0; field < fields; ++field) {
    if (feature.name != FieldName(field) || feature.kind != FeatureKind::kId) continue;
    return CtrColumns::Feature{field, feature.num_ids};
  }
  return NotCtr(absl::StrCat("the features \"field0\" to \"field", fields - 1, "\", ids"),
                absl::StrCat("\"", feature.name, "\", ", feature.FormText()));
}

}  // namespace

absl::StatusOr<CtrDistribution> CtrDistributionOf(const v1::DataConfig::GeneratedCtr& config) {
  const auto error = [](absl::string_view field, absl::string_view expected, auto found) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.generated_ctr.", field, ": expected ", expected, ", found ", found));
  };
  CtrDistribution result;
  if (config.fields() != 0) {
    if (config.fields() < 2 || config.fields() > int64_t{kMostFields}) {
      return error("fields", absl::StrCat("2 to ", kMostFields), config.fields());
    }
    result.fields = static_cast<size_t>(config.fields());
  }
  if (config.values() != 0) {
    const int64_t most = kMostCtrValues / static_cast<int64_t>(result.fields);
    if (config.values() < 2 || config.values() > most) {
      return error("values", absl::StrCat("2 to ", most, " with ", result.fields, " fields"),
                   config.values());
    }
    result.values = static_cast<uint32_t>(config.values());
  }
  // Beyond these bounds every record has one value of each field, or every label is certain.
  constexpr double kMost = 10;
  if (config.has_exponent()) result.exponent = config.exponent();
  if (config.has_weight_stddev()) {
    result.weight_stddev = static_cast<float>(config.weight_stddev());
  }
  if (config.has_vector_stddev()) {
    result.vector_stddev = static_cast<float>(config.vector_stddev());
  }
  if (config.has_bias()) result.bias = static_cast<float>(config.bias());
  const auto within = [](double number) { return number >= 0 && number <= kMost; };
  if (!within(result.exponent)) return error("exponent", "0 to 10", result.exponent);
  if (!within(result.weight_stddev)) return error("weight_stddev", "0 to 10", result.weight_stddev);
  if (!within(result.vector_stddev)) return error("vector_stddev", "0 to 10", result.vector_stddev);
  if (!(std::abs(result.bias) <= kMost)) return error("bias", "-10 to 10", result.bias);
  return result;
}

CtrTruth::CtrTruth(const CtrDistribution& distribution) : distribution_(distribution) {
  const uint32_t num_values = distribution_.values;
  values_.reserve(distribution_.fields * num_values);
  for (size_t field = 0; field < distribution_.fields; ++field) {
    salts_.push_back(FieldSalt(FieldName(field)));
    for (uint32_t value = 0; value < num_values; ++value) {
      RecordRandom random("generated ctr: values", field, DataSplit::kTrain, value);
      Value& drawn = values_.emplace_back();
      drawn.weight = distribution_.weight_stddev * random.Normal();
      for (float& number : drawn.vector) number = distribution_.vector_stddev * random.Normal();
    }
  }
  std::vector<double> sums = {0};
  for (uint32_t value = 0; value < num_values; ++value) {
    sums.push_back(sums.back() + std::pow(value + 1.0, -distribution_.exponent));
  }
  for (uint32_t value = 0; value < num_values; ++value) {
    below_.push_back(static_cast<uint32_t>(0x1p32 * sums[value] / sums.back()));
  }
  means_.resize(distribution_.fields);
  for (size_t field = 0; field < distribution_.fields; ++field) {
    std::array<double, kVectorNumbers> mean = {};
    for (uint32_t value = 0; value < num_values; ++value) {
      const double share = (sums[value + 1] - sums[value]) / sums.back();
      for (size_t k = 0; k < kVectorNumbers; ++k) mean[k] += share * At(field, value).vector[k];
    }
    for (size_t k = 0; k < kVectorNumbers; ++k) {
      means_[field][k] = static_cast<float>(mean[k]);
      sum_of_means_[k] += means_[field][k];
    }
  }
}

uint32_t CtrTruth::ValueAt(uint32_t uniform) const {
  return static_cast<uint32_t>(std::upper_bound(below_.begin(), below_.end(), uniform) -
                               below_.begin() - 1);
}

float CtrTruth::WeightsOf(absl::Span<const uint32_t> record) const {
  float sum = distribution_.bias;
  for (size_t field = 0; field < record.size(); ++field) sum += At(field, record[field]).weight;
  return sum;
}

float CtrTruth::LogitOf(absl::Span<const uint32_t> record) const {
  // The products of all pairs are half of the squared sum without the squares.
  float products = 0;
  for (size_t k = 0; k < kVectorNumbers; ++k) {
    float sum = 0, squares = 0;
    for (size_t field = 0; field < record.size(); ++field) {
      const float number = At(field, record[field]).vector[k];
      sum += number;
      squares += number * number;
    }
    products += (sum * sum - squares) / 2;
  }
  return WeightsOf(record) + products;
}

float CtrTruth::AdditiveOf(absl::Span<const uint32_t> record) const {
  // The products of a value's vector with the means of the other fields; the products of the means
  // with each other are a constant, which changes no order.
  float sum = WeightsOf(record);
  for (size_t field = 0; field < record.size(); ++field) {
    const Vector& vector = At(field, record[field]).vector;
    for (size_t k = 0; k < kVectorNumbers; ++k) {
      sum += vector[k] * (sum_of_means_[k] - means_[field][k]);
    }
  }
  return sum;
}

uint64_t CtrTruth::HashOf(size_t field, uint32_t value) const {
  std::array<char, sizeof(uint64_t)> bytes = {};
  for (size_t i = 0; i < sizeof(value); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return HashValue({bytes.data(), bytes.size()}, salts_[field]);
}

absl::StatusOr<CtrColumns> CtrColumnsOf(const RecordSchema& schema, size_t fields) {
  CtrColumns columns;
  for (const FeatureSpec& feature : schema.features) {
    ASSIGN_OR_RETURN(const CtrColumns::Feature known, CtrFeatureOf(feature, fields));
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
