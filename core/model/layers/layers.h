// One maker per kind of layer. The specs come from InferModelSpec; parameters outlive the layer.
#ifndef KEELSON_CORE_MODEL_LAYERS_LAYERS_H_
#define KEELSON_CORE_MODEL_LAYERS_LAYERS_H_

#include <memory>

#include "core/device/geometry.h"
#include "core/model/layer.h"

namespace keelson {

// y = x W + b
std::unique_ptr<Layer> MakeDense(const LayerSpec& spec, Parameter kernel, Parameter bias);
// y = x cross-correlated with W, + b
std::unique_ptr<Layer> MakeConv2D(const LayerSpec& spec, Parameter kernel, Parameter bias);
std::unique_ptr<Layer> MakeMaxPool(const LayerSpec& spec);
std::unique_ptr<Layer> MakeAvgPool(const LayerSpec& spec);
std::unique_ptr<Layer> MakeActivation(const LayerSpec& spec, ActivationKind kind);
// Drops in training only. `index` is the layer's position in the model.
std::unique_ptr<Layer> MakeDropout(const LayerSpec& spec, int index);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_LAYERS_LAYERS_H_
