// The losses of a model: what each computes of which scores and labels.
#ifndef KEELSON_CORE_MODEL_SPEC_LOSS_SPEC_H_
#define KEELSON_CORE_MODEL_SPEC_LOSS_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/layer_graph.h"
#include "core/tensor/shape.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

enum class LossKind {
  kSoftmaxCrossEntropy,
  kSigmoidCrossEntropy,
  kMeanSquaredError,
  kHuber,
  kInBatchSoftmax,
};

// "SOFTMAX_CROSS_ENTROPY", ..., as in the configuration.
const char* LossKindName(LossKind kind);
// Whether labels are numbers that the score shall be near to, and no classes.
bool IsRegression(LossKind kind);

struct LossSpec {
  LossKind kind = LossKind::kSoftmaxCrossEntropy;
  // The layers' outputs that it takes: the scores; of kInBatchSoftmax the queries, then the items.
  std::vector<ValueId> inputs = {};
  // The number of scores of one example. Of kInBatchSoftmax 1: query . item / temperature of the
  // example's own item, which is what is predicted.
  int64_t outputs = 0;
  // The position in RecordSchema::labels, and the label's name there; kInBatchSoftmax takes none,
  // and has a name alone.
  std::optional<size_t> label = {};
  std::string label_name = {};
  // In the sum of the losses.
  float weight = 1;
  // Of kHuber.
  float delta = 1;
  // Of kInBatchSoftmax: the size of a query and of an item, by what scores are divided, and the
  // label of the logarithms of the items' probabilities, nothing and "" where there are none.
  int64_t dim = 0;
  float temperature = 1;
  std::optional<size_t> log_probability_label = {};
  std::string log_probability_label_name = {};
  // The position in RecordSchema::labels of the records' weights, and its name; nothing, "": each
  // has the weight 1.
  std::optional<size_t> weight_label = {};
  std::string weight_label_name = {};

  // Labels are whole numbers from 0 to below this; 0: labels are any numbers.
  int64_t num_classes() const;
  // The floats of one example in each of the inputs.
  int64_t input_floats() const { return kind == LossKind::kInBatchSoftmax ? dim : outputs; }
};

// A layer's output that a loss takes.
struct LossInput {
  ValueId value = 0;
  std::string layer;
  Shape shape;
};

// Reads a loss of these inputs, which LayerGraph has of it.
// INVALID_ARGUMENT, beginning with `path` or a field's path in it: no kind; inputs that do not fit
// it, or queries that are the items; a malformed label; weights that are the label; a weight, delta
// or temperature that is not > 0 and finite; a field of another kind of loss.
absl::StatusOr<LossSpec> ReadLoss(const v1::LossConfig& config, const std::string& path,
                                  const std::vector<LossInput>& inputs);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LOSS_SPEC_H_
