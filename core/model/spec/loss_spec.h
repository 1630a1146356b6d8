// The losses of a model: what each computes of which scores and labels.
#ifndef KEELSON_CORE_MODEL_SPEC_LOSS_SPEC_H_
#define KEELSON_CORE_MODEL_SPEC_LOSS_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/spec/layer_graph.h"
#include "core/tensor/shape.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

enum class LossKind { kSoftmaxCrossEntropy, kSigmoidCrossEntropy, kMeanSquaredError, kHuber };

// "SOFTMAX_CROSS_ENTROPY", ..., as in the configuration.
const char* LossKindName(LossKind kind);
// Whether labels are numbers that the score shall be near to, and no classes.
bool IsRegression(LossKind kind);

struct LossSpec {
  LossKind kind = LossKind::kSoftmaxCrossEntropy;
  ValueId scores = 0;
  // The number of scores of one example.
  int64_t outputs = 0;
  // The position in RecordSchema::labels, and the label's name there.
  size_t label = 0;
  std::string label_name = {};
  // In the sum of the losses.
  float weight = 1;
  // Of kHuber.
  float delta = 1;
  // The position in RecordSchema::labels of the records' weights, and its name; nothing, "": each
  // has the weight 1.
  std::optional<size_t> weight_label = {};
  std::string weight_label_name = {};

  // Labels are whole numbers from 0 to below this; 0: labels are any numbers.
  int64_t num_classes() const;
};

// Reads a loss of the scores `scores`, which are a layer's output of this name and shape.
// INVALID_ARGUMENT, beginning with `path` or a field's path in it: no kind; scores that do not fit
// it; a malformed label; weights that are the label; a weight or delta that is not > 0 and finite;
// a delta of another loss.
absl::StatusOr<LossSpec> ReadLoss(const v1::LossConfig& config, const std::string& path,
                                  ValueId scores, const std::string& layer, const Shape& shape);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LOSS_SPEC_H_
