// The nodes of an ONNX graph that compute what a model's layers do when it predicts.
#ifndef KEELSON_CORE_ONNX_LAYER_NODES_H_
#define KEELSON_CORE_ONNX_LAYER_NODES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/model/spec/model_spec.h"
#include "core/onnx/graph_builder.h"

namespace keelson {

// The names of a feature's values: the inputs of the graph, and what is made of a bag's. What its
// kind has not is empty.
struct OnnxFeature {
  std::string numbers;  // float [n, the feature's shape]
  std::string ids;      // int64 [n], of a bag [ids]
  // Of a bag, float [n, ids]: the weight with which record i has id j, 0 where it is another's.
  std::string weights;
};

// The names of a table's values.
struct OnnxTableNames {
  std::string matrix;  // float [rows + 1, dim]: the last row is that of ids without one
  // By feature: int64, of each of its ids the row; "" where no layer looks it up in the table.
  std::vector<std::string> positions;
};

struct OnnxNames {
  std::vector<OnnxFeature> features;   // of the model's features
  std::vector<std::string> variables;  // of the model's variables
  std::vector<OnnxTableNames> tables;  // of the model's tables
  std::vector<std::string> outputs;    // of the layers so far
};

// Adds the nodes of a layer whose inputs are there, and its output to `names`.
void AddLayerNodes(const ModelSpec& model, const LayerSpec& layer, OnnxNames* names,
                   OnnxGraphBuilder* graph);

}  // namespace keelson

#endif  // KEELSON_CORE_ONNX_LAYER_NODES_H_
