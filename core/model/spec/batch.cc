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

absl::Status Mismatch(absl::string_view what, const Shape& expected, const Shape& found) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": expected the shape ", expected.ToString(),
                                                 ", found ", found.ToString()));
}

Shape Batched(int64_t batch, const Shape& example) {
  std::vector<int64_t> dims{batch};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  return Shape(std::move(dims));
}

absl::Status CheckLabel(const ModelSpec& spec, int64_t position, float label) {
  std::string expected;
  switch (spec.loss) {
    case LossKind::kSoftmaxCrossEntropy:
      // Written so that not-a-number fails too.
      if (label >= 0 && label < static_cast<float>(spec.output_size) &&
          label == std::floor(label)) {
        return absl::OkStatus();
      }
      expected = absl::StrCat("a class from 0 to ", spec.output_size - 1);
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
  return absl::InvalidArgumentError(
      absl::StrCat("batch: labels[", position, "]: expected ", expected, ", found ", label));
}

absl::Status NoExample() {
  return absl::InvalidArgumentError("batch: expected one example or more, found none");
}

absl::Status CheckFeatures(const ModelSpec& spec, int64_t examples, const Tensor& features) {
  const Shape expected = Batched(examples, spec.input);
  if (features.shape() == expected) return absl::OkStatus();
  return Mismatch("batch: features", expected, features.shape());
}

}  // namespace

absl::Status CheckFeatures(const ModelSpec& spec, const Tensor& features) {
  if (features.shape().rank() == 0 || features.size() == 0) return NoExample();
  return CheckFeatures(spec, features.shape().dim(0), features);
}

absl::Status CheckBatch(const ModelSpec& spec, const Batch& batch) {
  if (batch.size() == 0) return NoExample();
  if (batch.labels.shape().rank() != 1) {
    return Mismatch("batch: labels", Shape({batch.size()}), batch.labels.shape());
  }
  RETURN_IF_ERROR(CheckFeatures(spec, batch.size(), batch.features));
  for (int64_t i = 0; i < batch.size(); ++i) {
    RETURN_IF_ERROR(CheckLabel(spec, i, batch.labels.data()[i]));
  }
  return absl::OkStatus();
}

}  // namespace keelson
