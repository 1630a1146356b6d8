// A trained model as an ONNX model, for other programs to predict with.
#ifndef KEELSON_CORE_ONNX_ONNX_MODEL_H_
#define KEELSON_CORE_ONNX_ONNX_MODEL_H_

#include "absl/status/statusor.h"
#include "core/model/spec/model_spec.h"
#include "core/onnx/values.h"
#include "onnx/model.pb.h"

namespace keelson {

// Operators of version 17, and of version 2 of ai.onnx.ml where there are tables (LabelEncoder).
// Inputs are the features (AddFeature in lookup_nodes.h), of any number of records. Outputs: of the
// main loss "scores" and, of a cross-entropy, "probabilities" (of binary labels that of label 1),
// of IN_BATCH_SOFTMAX "queries" and "items" instead; of each other loss "scores_<label>".
// Embeddings are Gather; a table's ids are found by LabelEncoder, and other ids have its row
// `absent`. INVALID_ARGUMENT: the values have 2 GiB or more, which is what protobuf can hold.
absl::StatusOr<onnx::Model> MakeOnnxModel(const ModelSpec& model, const OnnxValues& values);

}  // namespace keelson

#endif  // KEELSON_CORE_ONNX_ONNX_MODEL_H_
