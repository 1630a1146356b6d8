// The nodes of an ONNX graph for the layers that compute inner products of their inputs, [n, dim]
// each.
#ifndef KEELSON_CORE_ONNX_INTERACTION_NODES_H_
#define KEELSON_CORE_ONNX_INTERACTION_NODES_H_

#include <string>
#include <vector>

#include "core/model/spec/layer_spec.h"
#include "core/onnx/graph_builder.h"

namespace keelson {

// Each returns the name of the output.
std::string AddDot(const LayerSpec& layer, const std::vector<std::string>& x,
                   OnnxGraphBuilder* graph);
std::string AddCosine(const LayerSpec& layer, const std::vector<std::string>& x,
                      OnnxGraphBuilder* graph);
std::string AddFactorizationMachine(const LayerSpec& layer, const std::vector<std::string>& x,
                                    OnnxGraphBuilder* graph);
std::string AddDotInteraction(const LayerSpec& layer, const std::vector<std::string>& x,
                              OnnxGraphBuilder* graph);

}  // namespace keelson

#endif  // KEELSON_CORE_ONNX_INTERACTION_NODES_H_
