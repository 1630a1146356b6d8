// The meaning of a model configuration: layers with their shapes, and variables. Shape inference
// only: no device, no values.
#ifndef KEELSON_CORE_MODEL_SPEC_MODEL_SPEC_H_
#define KEELSON_CORE_MODEL_SPEC_MODEL_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/shape.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

enum class LayerKind {
  kDense,
  kConv2D,
  kMaxPool,
  kAvgPool,
  kFlatten,
  kRelu,
  kTanh,
  kSigmoid,
  kDropout,
  kBatchNorm,
};

enum class LossKind { kSoftmaxCrossEntropy, kSigmoidCrossEntropy, kMeanSquaredError };

// "dense", "conv2d", ..., as in the configuration.
const char* LayerKindName(LayerKind kind);
// "SOFTMAX_CROSS_ENTROPY", ..., as in the configuration.
const char* LossKindName(LossKind kind);

struct LayerSpec {
  LayerKind kind = LayerKind::kFlatten;
  // Default: the kind and its number from 1 among the layers of this kind, "dense_1".
  std::string name;
  // The shape of one example, without the batch.
  Shape input;
  Shape output;
  // Positions in ModelSpec::variables.
  std::optional<size_t> kernel;
  std::optional<size_t> bias;
  std::optional<size_t> gamma;
  std::optional<size_t> beta;
  std::optional<size_t> moving_mean;
  std::optional<size_t> moving_variance;
  // For convolutions and pools: the window's extent, its stride, and the padding before the first
  // row and column. SAME is TensorFlow's: the output has ceil(input / stride) rows, and an odd
  // padding has its extra row at the end.
  int64_t window = 0;
  int64_t stride = 1;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  float dropout_rate = 0;
  float batch_norm_epsilon = 0;

  // Positions of all the variables that the layer has, ascending.
  std::vector<size_t> variables() const;
};

struct ModelSpec {
  std::string name;
  Shape input;  // of one example
  std::vector<LayerSpec> layers;
  // In the order of the layers: "<layer>/kernel" ([inputs, units] or [kernel, kernel, channels,
  // filters]) and "<layer>/bias" (zeros at first); of batch norm, all [channels], "<layer>/gamma"
  // (ones), "/beta" (zeros), and "/moving_mean" (zeros) and "/moving_variance" (ones), which are
  // not trained. Initial kernels: Glorot and Bengio, "Understanding the difficulty of training deep
  // feedforward neural networks", AISTATS 2010 (uniform); He et al., "Delving deep into
  // rectifiers", ICCV 2015 (normal).
  std::vector<VariableSpec> variables;
  LossKind loss = LossKind::kSoftmaxCrossEntropy;
  // The number of scores of one example.
  int64_t output_size = 0;

  // Labels are below this; 0: labels are any numbers.
  int64_t num_classes() const;
};

// INVALID_ARGUMENT, the text beginning with the field's path ("model.layers[2].dense.units:
// expected > 0, found -3"): a missing or bad number or kind; two layers of one name; a layer that
// does not take its input's shape; an output that does not fit the loss; nothing to train; a tensor
// of more than 2^31 - 1 elements.
absl::StatusOr<ModelSpec> InferModelSpec(const v1::ModelConfig& config);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_MODEL_SPEC_H_
