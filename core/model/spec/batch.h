// A batch of examples, the input of a model.
#ifndef KEELSON_CORE_MODEL_SPEC_BATCH_H_
#define KEELSON_CORE_MODEL_SPEC_BATCH_H_

#include "absl/status/status.h"
#include "core/model/spec/model_spec.h"
#include "core/tensor/tensor.h"

namespace keelson {

struct Batch {
  Tensor features;  // [n, example shape]
  Tensor labels;    // [n]; class numbers or targets

  int64_t size() const { return labels.size(); }
};

// INVALID_ARGUMENT: no example, shapes that are not the model's, or a label that the loss does not
// take.
absl::Status CheckBatch(const ModelSpec& spec, const Batch& batch);
// The same for features alone.
absl::Status CheckFeatures(const ModelSpec& spec, const Tensor& features);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_BATCH_H_
