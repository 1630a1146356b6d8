// The names of a configuration's features and layers, whose output each layer and each loss takes,
// and an order in which the layers can be computed.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYER_GRAPH_H_
#define KEELSON_CORE_MODEL_SPEC_LAYER_GRAPH_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/layer_kind.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// A value of a graph.
using ValueId = size_t;

// The numbers of a graph's values: first the features, then the outputs of the layers in the order
// of computation.
class GraphValues {
 public:
  explicit GraphValues(size_t features) : features_(features) {}

  bool IsFeature(ValueId value) const { return value < features_; }
  ValueId OutputOf(size_t layer) const { return features_ + layer; }
  // Of a value that is no feature.
  size_t LayerOf(ValueId value) const { return value - features_; }

 private:
  size_t features_;
};

struct LayerNode {
  int position = 0;  // in the configuration's list
  LayerKind kind = {};
  // Default: the kind and its number from 1 among the layers of this kind in the list, "dense_1".
  std::string name;
  std::vector<ValueId> inputs;  // at least one
};

struct LayerGraph {
  // In an order in which each takes features and outputs of earlier ones only, otherwise that of
  // the list: a chain's is the list.
  std::vector<LayerNode> layers;
  // The values that each loss takes, layers' outputs: its scores, which are those of the list's
  // last layer where it names none; of IN_BATCH_SOFTMAX the queries and the items.
  std::vector<std::vector<ValueId>> of_losses;
};

// `features` are the features' names. The losses are `losses`, or the only one, `loss`.
// INVALID_ARGUMENT, the text beginning with the field's path: no layer; a layer without a kind; a
// name that is malformed or there twice; an input that no feature and no layer is called, or both;
// no input of the first layer where there are several features; a cycle; scores, queries or items
// that are no layer's name; scores of a loss that takes queries and items; a feature that no layer
// takes, or an output that neither a layer nor a loss takes.
absl::StatusOr<LayerGraph> OrderLayers(const v1::ModelConfig& config,
                                       const std::vector<std::string>& features);

// "model.losses[1]", or "model.loss" where that is the only one.
std::string PathOfLoss(const v1::ModelConfig& config, int loss);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYER_GRAPH_H_
