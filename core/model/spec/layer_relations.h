// How the layers of a model belong together, by name: for those who show a model.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYER_RELATIONS_H_
#define KEELSON_CORE_MODEL_SPEC_LAYER_RELATIONS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/model/spec/layer_graph.h"
#include "core/model/spec/layer_spec.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

// The names of the features and layers that the layer takes, in the order of its inputs.
std::vector<std::string> InputNames(const ModelSpec& model, const LayerSpec& layer);

// By position in RecordSchema::features, which of the features the value depends on.
std::vector<bool> FeaturesOf(const ModelSpec& model, ValueId value);

// The first of the layers before `layers[layer]` that has the same variables; null: there is none.
// Lives as long as the model.
const LayerSpec* OwnerOfVariables(const ModelSpec& model, size_t layer);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYER_RELATIONS_H_
