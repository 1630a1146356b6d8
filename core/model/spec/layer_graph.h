// The names of a configuration's layers, whose output each of them takes, and an order in which
// they can be computed.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYER_GRAPH_H_
#define KEELSON_CORE_MODEL_SPEC_LAYER_GRAPH_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/spec/layer_kind.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// What layers call the model's input.
inline constexpr absl::string_view kFeatures = "features";

// A value of a graph: 0 is the model's input, 1 + i the output of the i-th layer in the order of
// computation.
using ValueId = size_t;
inline constexpr ValueId kFeaturesValue = 0;
inline ValueId OutputOf(size_t layer) { return layer + 1; }

struct LayerNode {
  int position = 0;  // in the configuration's list
  LayerKind kind = {};
  // Default: the kind and its number from 1 among the layers of this kind in the list, "dense_1".
  std::string name;
  std::vector<ValueId> inputs;  // at least one
};

// The layers in an order in which each takes outputs of earlier ones only, otherwise that of the
// list: a chain's is the list. The last one is the list's last.
// INVALID_ARGUMENT, the text beginning with the field's path: no layer; a layer without a kind; a
// name that is malformed or there twice; an input that no layer is called; a cycle; an output that
// no layer takes, except the last one's.
absl::StatusOr<std::vector<LayerNode>> OrderLayers(const v1::ModelConfig& config);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYER_GRAPH_H_
