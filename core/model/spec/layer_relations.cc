#include "core/model/spec/layer_relations.h"

#include <optional>

namespace keelson {

std::vector<std::string> InputNames(const ModelSpec& model, const LayerSpec& layer) {
  std::vector<std::string> names;
  names.reserve(layer.inputs.size());
  for (const ValueId input : layer.inputs) names.push_back(model.NameOf(input));
  return names;
}

std::vector<bool> FeaturesOf(const ModelSpec& model, ValueId value) {
  std::vector<bool> needed(model.values().OutputOf(model.layers.size()));
  needed[value] = true;
  // Layers come after those whose outputs they take.
  for (size_t i = model.layers.size(); i-- > 0;) {
    if (!needed[model.values().OutputOf(i)]) continue;
    for (const ValueId input : model.layers[i].inputs) needed[input] = true;
  }
  needed.resize(model.records.features.size());
  return needed;
}

const LayerSpec* OwnerOfVariables(const ModelSpec& model, size_t layer) {
  const std::optional<size_t> shared = model.layers[layer].shared_variable();
  if (!shared.has_value()) return nullptr;
  for (size_t owner = 0; owner < layer; ++owner) {
    if (model.layers[owner].shared_variable() == shared) return &model.layers[owner];
  }
  return nullptr;
}

}  // namespace keelson
