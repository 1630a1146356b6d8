#include "core/model/spec/batch.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"

namespace keelson {
namespace {

absl::Status Mismatch(absl::string_view name, const Shape& expected, const Shape& found) {
  return absl::InvalidArgumentError(absl::StrCat(
      "batch: ", name, ": expected the shape ", expected.ToString(), ", found ", found.ToString()));
}

absl::Status WrongCount(absl::string_view what, size_t expected, size_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("batch: ", what, ": expected ", expected, ", found ", found));
}

absl::Status WrongSize(const FeatureSpec& feature, absl::string_view what, size_t expected,
                       size_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("batch: ", feature.name, ": expected ", expected, " ", what, ", found ", found));
}

absl::Status CheckSize(const FeatureSpec& feature, absl::string_view what, size_t expected,
                       size_t found) {
  return found == expected ? absl::OkStatus() : WrongSize(feature, what, expected, found);
}

// Of a bag with so many offsets.
absl::Status CheckOffsets(const FeatureSpec& feature, const FeatureValues& values) {
  const std::vector<int64_t>& offsets = values.offsets;
  const auto ids = static_cast<int64_t>(values.ids.size());
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t least = i == 0 ? 0 : offsets[i - 1];
    const int64_t most = i == 0 ? 0 : ids;
    if (offsets[i] >= least && offsets[i] <= most) continue;
    return absl::InvalidArgumentError(absl::StrCat("batch: ", feature.name, ": offset ", i,
                                                   ": expected ", least, " to ", most, ", found ",
                                                   offsets[i]));
  }
  return CheckSize(feature, "ids by the offsets", offsets.back(), values.ids.size());
}

// The record to which id `k` belongs.
int64_t RecordOf(const FeatureValues& values, int64_t k) {
  if (values.offsets.empty()) return k;
  return std::upper_bound(values.offsets.begin(), values.offsets.end(), k) -
         values.offsets.begin() - 1;
}

absl::Status BadValue(const FeatureSpec& feature, const FeatureValues& values, size_t k,
                      const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat("batch: ", feature.name, " of record ",
                                                 RecordOf(values, static_cast<int64_t>(k)), ": ",
                                                 text));
}

absl::Status CheckValuesOfIds(const FeatureSpec& feature, const FeatureValues& values) {
  for (size_t k = 0; feature.num_ids > 0 && k < values.ids.size(); ++k) {
    if (values.ids[k] < static_cast<uint64_t>(feature.num_ids)) continue;
    return BadValue(
        feature, values, k,
        absl::StrCat("expected an id from 0 to ", feature.num_ids - 1, ", found ", values.ids[k]));
  }
  for (size_t k = 0; k < values.weights.size(); ++k) {
    if (std::isfinite(values.weights[k])) continue;
    return BadValue(feature, values, k,
                    absl::StrCat("expected a finite weight, found ", values.weights[k]));
  }
  return absl::OkStatus();
}

absl::Status CheckIds(const FeatureSpec& feature, int64_t records, const FeatureValues& values) {
  const bool bag = feature.kind == FeatureKind::kBag;
  RETURN_IF_ERROR(CheckSize(feature, "numbers", 0, values.numbers.size()));
  RETURN_IF_ERROR(CheckSize(feature, "offsets", bag ? records + 1 : 0, values.offsets.size()));
  if (bag) {
    RETURN_IF_ERROR(CheckOffsets(feature, values));
  } else {
    RETURN_IF_ERROR(CheckSize(feature, "ids", records, values.ids.size()));
  }
  if (values.ids.size() > static_cast<uint64_t>(kMaxElements)) {
    return absl::InvalidArgumentError(absl::StrCat("batch: ", feature.name, ": expected at most ",
                                                   kMaxElements, " ids, found ",
                                                   values.ids.size()));
  }
  RETURN_IF_ERROR(CheckSize(feature, "weights", feature.weighted ? values.ids.size() : 0,
                            values.weights.size()));
  return CheckValuesOfIds(feature, values);
}

absl::Status CheckNumbers(const FeatureSpec& feature, const Shape& expected,
                          const FeatureValues& values) {
  RETURN_IF_ERROR(CheckSize(feature, "ids", 0, values.ids.size()));
  RETURN_IF_ERROR(CheckSize(feature, "offsets", 0, values.offsets.size()));
  const Shape& found = values.numbers.shape();
  return found == expected ? absl::OkStatus() : Mismatch(feature.name, expected, found);
}

absl::Status CheckPositions(const std::string& where, const BatchRows& rows, size_t feature,
                            size_t expected) {
  absl::Span<const int32_t> positions;
  if (feature < rows.positions.size()) positions = rows.positions[feature];
  if (positions.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": expected ", expected,
                                                   " positions of rows, found ", positions.size()));
  }
  for (const int32_t position : positions) {
    if (position >= 0 && static_cast<size_t>(position) < rows.ids.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(where, ": expected a position of ",
                                                   rows.ids.size(), " rows, found ", position));
  }
  return absl::OkStatus();
}

absl::Status CheckRows(const ModelSpec& spec, const Batch& batch) {
  if (batch.rows.size() != spec.tables.size()) {
    return WrongCount("tables with rows", spec.tables.size(), batch.rows.size());
  }
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    const TableSpec& table = spec.tables[t];
    const auto rows = static_cast<int64_t>(batch.rows[t].ids.size());
    if (rows > kMaxElements / table.dim) {
      return absl::InvalidArgumentError(absl::StrCat("batch: ", table.name, ": expected at most ",
                                                     kMaxElements / table.dim, " rows, found ",
                                                     rows));
    }
    for (const LayerSpec& layer : spec.layers) {
      if (layer.table != t) continue;
      const size_t feature = layer.inputs.front();
      RETURN_IF_ERROR(CheckPositions(
          absl::StrCat("batch: ", spec.records.features[feature].name, " in ", table.name),
          batch.rows[t], feature, batch.features[feature].ids.size()));
    }
  }
  return absl::OkStatus();
}

Shape Batched(int64_t records, const Shape& record) {
  std::vector<int64_t> dims{records};
  dims.insert(dims.end(), record.dims().begin(), record.dims().end());
  return Shape(std::move(dims));
}

void ResizeFeature(int64_t records, const FeatureSpec& feature, FeatureValues* values) {
  const bool numbers = feature.kind == FeatureKind::kNumbers;
  if (numbers) {
    Resize(records, feature.shape, &values->numbers);
  } else if (values->numbers.size() > 0) {
    values->numbers = Tensor();
  }
  values->ids.resize(feature.kind == FeatureKind::kId ? records : 0);
  values->offsets.assign(feature.kind == FeatureKind::kBag ? records + 1 : 0, 0);
  values->weights.clear();
}

absl::Status BadLabel(const std::string& name, int64_t position, absl::string_view expected,
                      float found) {
  return absl::InvalidArgumentError(
      absl::StrCat("batch: ", name, "[", position, "]: expected ", expected, ", found ", found));
}

absl::Status CheckLabel(const LossSpec& loss, int64_t position, float label) {
  std::string expected;
  switch (loss.kind) {
    case LossKind::kSoftmaxCrossEntropy:
      // Written so that not-a-number fails too.
      if (label >= 0 && label < static_cast<float>(loss.outputs) && label == std::floor(label)) {
        return absl::OkStatus();
      }
      expected = absl::StrCat("a class from 0 to ", loss.outputs - 1);
      break;
    case LossKind::kSigmoidCrossEntropy:
      if (label == 0 || label == 1) return absl::OkStatus();
      expected = "0 or 1";
      break;
    case LossKind::kMeanSquaredError:
    case LossKind::kHuber:
    case LossKind::kInBatchSoftmax:
      if (std::isfinite(label)) return absl::OkStatus();
      expected = "a finite number";
      break;
  }
  return BadLabel(loss.label_name, position, expected, label);
}

absl::Status CheckLabels(const LossSpec& loss, absl::Span<const float> labels) {
  for (size_t r = 0; r < labels.size(); ++r) {
    RETURN_IF_ERROR(CheckLabel(loss, static_cast<int64_t>(r), labels[r]));
  }
  return absl::OkStatus();
}

absl::Status CheckLogProbabilities(const std::string& name, absl::Span<const float> logarithms) {
  for (size_t r = 0; r < logarithms.size(); ++r) {
    if (std::isfinite(logarithms[r])) continue;
    return BadLabel(name, static_cast<int64_t>(r), "a finite number", logarithms[r]);
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(const std::string& name, absl::Span<const float> weights) {
  for (size_t r = 0; r < weights.size(); ++r) {
    // Written so that not-a-number fails too.
    if (weights[r] >= 0 && std::isfinite(weights[r])) continue;
    return BadLabel(name, static_cast<int64_t>(r), "a finite weight >= 0", weights[r]);
  }
  return absl::OkStatus();
}

}  // namespace

int64_t FeatureValues::records() const {
  if (!offsets.empty()) return static_cast<int64_t>(offsets.size()) - 1;
  if (!ids.empty()) return static_cast<int64_t>(ids.size());
  return numbers.shape().rows();
}

int64_t Batch::size() const { return features.empty() ? 0 : features.front().records(); }

Batch MakeBatch(Tensor numbers, Tensor labels) {
  Batch batch;
  batch.features.push_back({std::move(numbers)});
  batch.labels.push_back(std::move(labels));
  return batch;
}

void Resize(int64_t records, const Shape& shape, Tensor* tensor) {
  Shape batched = Batched(records, shape);
  if (tensor->shape() != batched) *tensor = Tensor(std::move(batched));
}

void Resize(int64_t records, const RecordSchema& schema, Batch* batch) {
  batch->features.resize(schema.features.size());
  for (size_t i = 0; i < schema.features.size(); ++i) {
    ResizeFeature(records, schema.features[i], &batch->features[i]);
  }
  batch->labels.resize(schema.labels.size());
  for (Tensor& labels : batch->labels) Resize(records, Shape(), &labels);
}

absl::Status CheckFeatures(const ModelSpec& spec, const Batch& batch) {
  if (batch.size() == 0) {
    return absl::InvalidArgumentError("batch: expected one example or more, found none");
  }
  const std::vector<FeatureSpec>& features = spec.records.features;
  if (batch.features.size() != features.size()) {
    return WrongCount("features", features.size(), batch.features.size());
  }
  for (size_t i = 0; i < features.size(); ++i) {
    const FeatureSpec& feature = features[i];
    RETURN_IF_ERROR(
        feature.kind == FeatureKind::kNumbers
            ? CheckNumbers(feature, Batched(batch.size(), feature.shape), batch.features[i])
            : CheckIds(feature, batch.size(), batch.features[i]));
  }
  return CheckRows(spec, batch);
}

absl::Status CheckBatch(const ModelSpec& spec, const Batch& batch) {
  RETURN_IF_ERROR(CheckFeatures(spec, batch));
  const std::vector<LabelSpec>& labels = spec.records.labels;
  if (batch.labels.size() != labels.size()) {
    return WrongCount("labels", labels.size(), batch.labels.size());
  }
  const Shape expected({batch.size()});
  for (size_t i = 0; i < labels.size(); ++i) {
    const Shape& found = batch.labels[i].shape();
    if (found != expected) return Mismatch(labels[i].name, expected, found);
  }
  for (const LossSpec& loss : spec.losses) {
    if (loss.label) RETURN_IF_ERROR(CheckLabels(loss, batch.labels[*loss.label].span()));
    if (loss.log_probability_label) {
      RETURN_IF_ERROR(CheckLogProbabilities(loss.log_probability_label_name,
                                            batch.labels[*loss.log_probability_label].span()));
    }
    if (!loss.weight_label) continue;
    RETURN_IF_ERROR(CheckWeights(loss.weight_label_name, batch.labels[*loss.weight_label].span()));
  }
  return absl::OkStatus();
}

}  // namespace keelson
