#include "core/model/spec/layer_relations.h"

#include <optional>

#include "core/model/spec/layer_graph.h"

namespace keelson {

std::vector<std::string> InputNames(const ModelSpec& model, const LayerSpec& layer) {
  std::vector<std::string> names;
  names.reserve(layer.inputs.size());
  for (const ValueId input : layer.inputs) names.push_back(model.NameOf(input));
  return names;
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
