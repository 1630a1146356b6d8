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

// A feature's values of all n records of a batch. What its kind has not is empty.
struct FeatureValues {
  Tensor numbers = {};  // [n, the feature's shape]
  // Those of all records, one after the other: of the kind id one each, of a bag those of record i
  // are [offsets[i], offsets[i + 1]).
  std::vector<uint64_t> ids = {};
  std::vector<int64_t> offsets = {};  // of a bag: [n + 1], from 0 to the number of ids
  std::vector<float> weights = {};    // of a weighted bag: of each id

  // n.
  int64_t records() const;
};

// The rows of a table that a batch needs.
struct BatchRows {
  // Whose rows they are: distinct, in ascending order of (RowPartitionOf, id).
  std::vector<uint64_t> ids;
  // By feature: of each of its ids the position in `ids`; nothing where no layer looks the feature
  // up in the table.
  std::vector<std::vector<int32_t>> positions;
};

// Features and labels are those of a RecordSchema, in its order.
struct Batch {
  std::vector<FeatureValues> features;
  std::vector<Tensor> labels;  // each [n]
  // By table of the model, as RowIndexer sets it.
  std::vector<BatchRows> rows = {};

  // The number of records, n; 0 without a feature.
  int64_t size() const;
};

// A batch of the one feature and the one label of a model that takes no others.
Batch MakeBatch(Tensor numbers, Tensor labels);

// Gives the tensor the shape, [n, that of a record], unless it has it already; its elements are
// then unspecified.
void Resize(int64_t records, const Shape& shape, Tensor* tensor);
// Gives a batch room for so many records of the schema. Values of before are unspecified; bags
// are empty.
void Resize(int64_t records, const RecordSchema& schema, Batch* batch);

// INVALID_ARGUMENT: no record, features or labels that are not the model's or whose shapes are
// not, an id that an embedding has no row for, bags whose offsets or weights do not fit their ids,
// `rows` that are not those of the features' ids by number, a weight that is not finite or of a
// record negative, or a label that a loss does not take.
absl::Status CheckBatch(const ModelSpec& spec, const Batch& batch);
// The same for features alone.
absl::Status CheckFeatures(const ModelSpec& spec, const Batch& batch);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_BATCH_H_
