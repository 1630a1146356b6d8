#include "core/model/spec/batch.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"

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

Shape Batched(int64_t records, const Shape& record) {
  std::vector<int64_t> dims{records};
  dims.insert(dims.end(), record.dims().begin(), record.dims().end());
  return Shape(std::move(dims));
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
      if (std::isfinite(label)) return absl::OkStatus();
      expected = "a finite number";
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("batch: ", loss.label_name, "[", position,
                                                 "]: expected ", expected, ", found ", label));
}

}  // namespace

int64_t Batch::size() const {
  return features.empty() ? 0 : features.front().numbers.shape().rows();
}

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
    Resize(records, schema.features[i].shape, &batch->features[i].numbers);
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
    const Shape expected = Batched(batch.size(), features[i].shape);
    const Shape& found = batch.features[i].numbers.shape();
    if (found != expected) return Mismatch(features[i].name, expected, found);
  }
  return absl::OkStatus();
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
    const absl::Span<const float> values = batch.labels[loss.label].span();
    for (size_t r = 0; r < values.size(); ++r) {
      RETURN_IF_ERROR(CheckLabel(loss, static_cast<int64_t>(r), values[r]));
    }
  }
  return absl::OkStatus();
}

}  // namespace keelson
