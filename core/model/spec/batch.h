// A batch of records, the input of a model.
#ifndef KEELSON_CORE_MODEL_SPEC_BATCH_H_
#define KEELSON_CORE_MODEL_SPEC_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/record_schema.h"
#include "core/tensor/tensor.h"

namespace keelson {

// A feature's values of all records of a batch.
struct FeatureValues {
  Tensor numbers;  // [n, the feature's shape]
};

// Features and labels are those of a RecordSchema, in its order.
struct Batch {
  std::vector<FeatureValues> features;
  std::vector<Tensor> labels;  // each [n]

  // The number of records, n; 0 without a feature.
  int64_t size() const;
};

// A batch of the one feature and the one label of a model that takes no others.
Batch MakeBatch(Tensor numbers, Tensor labels);

// Gives the tensor the shape, [n, that of a record], unless it has it already; its elements are
// then unspecified.
void Resize(int64_t records, const Shape& shape, Tensor* tensor);
// Gives a batch room for so many records of the schema. Values of before are unspecified.
void Resize(int64_t records, const RecordSchema& schema, Batch* batch);

// INVALID_ARGUMENT: no record, features or labels that are not the model's or whose shapes are
// not, or a label that a loss does not take.
absl::Status CheckBatch(const ModelSpec& spec, const Batch& batch);
// The same for features alone.
absl::Status CheckFeatures(const ModelSpec& spec, const Batch& batch);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_BATCH_H_
