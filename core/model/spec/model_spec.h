// The meaning of a model configuration: layers with their shapes, and variables. Shape inference
// only: no device, no values.
#ifndef KEELSON_CORE_MODEL_SPEC_MODEL_SPEC_H_
#define KEELSON_CORE_MODEL_SPEC_MODEL_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/layer_graph.h"
#include "core/model/spec/layer_spec.h"
#include "core/model/spec/loss_spec.h"
#include "core/model/spec/record_schema.h"
#include "core/tensor/shape.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct ModelSpec {
  std::string name;
  RecordSchema records;
  // In an order in which they can be computed; a chain's is the configuration's.
  std::vector<LayerSpec> layers;
  // In the order of the layers (of those that share variables the first one's): "<layer>/kernel"
  // ([inputs, units] or [kernel, kernel, channels, filters]) and "<layer>/bias" (zeros at first);
  // of batch norm, all [channels], "<layer>/gamma" (ones), "/beta" (zeros), and "/moving_mean"
  // (zeros) and "/moving_variance" (ones), which are not trained. Initial kernels: Glorot and
  // Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS
  // 2010 (uniform); He et al., "Delving deep into rectifiers", ICCV 2015 (normal). Embeddings are
  // "<layer>/embeddings", [rows, dim].
  std::vector<VariableSpec> variables;
  // In the order of the configuration. Each is that of some layer.
  std::vector<TableSpec> tables;
  // At least one. The model's loss is the sum of their weights times their means over the records,
  // each record's loss multiplied by its weight where there are weights. That is linear in the
  // records: the mean of equal parts of a batch is that of the batch, on any number of devices and
  // workers, and a weight does not depend on the company that its record has. (It is Keras'
  // SUM_OVER_BATCH_SIZE with sample weights.)
  std::vector<LossSpec> losses;

  // The first one, of whose scores predictions and metrics are.
  const LossSpec& main_loss() const { return losses.front(); }
  // "SOFTMAX_CROSS_ENTROPY", or of several "SIGMOID_CROSS_ENTROPY of click + 0.5
  // MEAN_SQUARED_ERROR of price"; with records' weights "HUBER weighted by trust".
  std::string LossText() const;
  // The elements of the layer's variables, except those that an earlier layer has, too. Those of
  // tables, of which there are any number, are not counted.
  int64_t parameters_of(const LayerSpec& layer) const;
  GraphValues values() const { return GraphValues(records.features.size()); }
  // Of one example.
  const Shape& ShapeOf(ValueId value) const {
    return values().IsFeature(value) ? records.features[value].shape
                                     : layers[values().LayerOf(value)].output;
  }
  // The feature's or the layer's.
  const std::string& NameOf(ValueId value) const {
    return values().IsFeature(value) ? records.features[value].name
                                     : layers[values().LayerOf(value)].name;
  }
};

// INVALID_ARGUMENT, the text beginning with the field's path ("model.layers[2].dense.units:
// expected > 0, found -3"): a missing or bad number; a feature without a name of its own; a graph
// that makes no sense (OrderLayers); a layer that does not take its inputs' number or shapes, or
// cannot share variables with the layer that it names; a table that is malformed or that no layer
// names, or a layer that names none there is; outputs that do not fit their loss, or
// that depends on no variable; two losses of one label; nothing to train; a tensor of more than
// 2^31 - 1 elements; an external model, which has no layers (InferVariables).
absl::StatusOr<ModelSpec> InferModelSpec(const v1::ModelConfig& config);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_MODEL_SPEC_H_
