// One maker per kind of layer. The specs come from InferModelSpec; parameters outlive the layer.
#ifndef KEELSON_CORE_MODEL_LAYERS_LAYERS_H_
#define KEELSON_CORE_MODEL_LAYERS_LAYERS_H_

#include <memory>
#include <optional>

#include "core/device/geometry.h"
#include "core/model/layers/layer.h"

namespace keelson {

// y = activation(x W + b)
std::unique_ptr<Layer> MakeDense(const LayerSpec& spec, Parameter kernel, Parameter bias,
                                 std::optional<ActivationKind> activation);
// y = activation(x cross-correlated with W, + b)
std::unique_ptr<Layer> MakeConv2D(const LayerSpec& spec, Parameter kernel, Parameter bias,
                                  std::optional<ActivationKind> activation);
std::unique_ptr<Layer> MakeMaxPool(const LayerSpec& spec);
std::unique_ptr<Layer> MakeAvgPool(const LayerSpec& spec);
std::unique_ptr<Layer> MakeActivation(const LayerSpec& spec, ActivationKind kind);
// Drops in training only. `index` is the layer's position in the model.
std::unique_ptr<Layer> MakeDropout(const LayerSpec& spec, size_t index);

// y = x1 + x2 + ...
std::unique_ptr<Layer> MakeAdd(const LayerSpec& spec);
// y = x1 * x2, element by element; dx1 = dy * x2, dx2 = dy * x1.
std::unique_ptr<Layer> MakeMultiply(const LayerSpec& spec);
// The inputs' columns side by side, where the last axis has the columns.
std::unique_ptr<Layer> MakeConcat(const LayerSpec& spec);
// Some of the input's columns; the gradient of the others is 0.
std::unique_ptr<Layer> MakeSlice(const LayerSpec& spec);
// y = factor * x
std::unique_ptr<Layer> MakeScale(const LayerSpec& spec);

struct BatchNormParameters {
  Parameter gamma;  // null: 1
  Parameter beta;   // null: 0
  Parameter moving_mean;
  Parameter moving_variance;
};

// In training the statistics are the batch's, which Forward also leaves in the gradients of
// moving_mean and moving_variance: the samples of which the servers keep a moving average (the
// variance unbiased). In evaluation they are the moving ones.
std::unique_ptr<Layer> MakeBatchNorm(const LayerSpec& spec, const BatchNormParameters& parameters);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_LAYERS_LAYERS_H_
