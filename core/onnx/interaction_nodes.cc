#include "core/onnx/interaction_nodes.h"

#include <cstdint>

namespace keelson {
namespace {

// a . b of each record, [n, 1].
std::string RowDots(const LayerSpec& layer, const std::string& a, const std::string& b,
                    OnnxGraphBuilder* graph) {
  const std::string axes = graph->Ints(layer.name + "/axes", {1});
  return graph->Add("ReduceSum", {graph->Add("Mul", {a, b}, layer.name), axes}, layer.name);
}

}  // namespace

std::string AddDot(const LayerSpec& layer, const std::vector<std::string>& x,
                   OnnxGraphBuilder* graph) {
  return RowDots(layer, x[0], x[1], graph);
}

std::string AddCosine(const LayerSpec& layer, const std::vector<std::string>& x,
                      OnnxGraphBuilder* graph) {
  const std::string epsilon = graph->Float(layer.name + "/epsilon", layer.epsilon);
  std::string y = RowDots(layer, x[0], x[1], graph);
  for (size_t k = 0; k < 2; ++k) {
    const std::string square = RowDots(layer, x[k], x[k], graph);
    const std::string length =
        graph->Add("Sqrt", {graph->Add("Add", {square, epsilon}, layer.name)}, layer.name);
    y = graph->Add("Div", {y, length}, layer.name);
  }
  return y;
}

std::string AddFactorizationMachine(const LayerSpec& layer, const std::vector<std::string>& x,
                                    OnnxGraphBuilder* graph) {
  const std::string sum = graph->Add("Sum", x, layer.name);
  std::string twice = RowDots(layer, sum, sum, graph);
  for (const std::string& v : x) {
    twice = graph->Add("Sub", {twice, RowDots(layer, v, v, graph)}, layer.name);
  }
  const std::string half = graph->Float(layer.name + "/half", 0.5f);
  return graph->Add("Mul", {twice, half}, layer.name);
}

std::string AddDotInteraction(const LayerSpec& layer, const std::vector<std::string>& x,
                              OnnxGraphBuilder* graph) {
  // The products of all vectors with all, of which a part is taken.
  const auto vectors = static_cast<int64_t>(x.size());
  const std::string stacked =
      graph->Add("Reshape",
                 {graph->Add("Concat", x, layer.name, {OnnxAttribute::Int("axis", 1)}),
                  graph->Ints(layer.name + "/vectors", {-1, vectors, layer.input.dim(0)})},
                 layer.name);
  const std::string turned =
      graph->Add("Transpose", {stacked}, layer.name, {OnnxAttribute::Ints("perm", {0, 2, 1})});
  const std::string products =
      graph->Add("Reshape",
                 {graph->Add("MatMul", {stacked, turned}, layer.name),
                  graph->Ints(layer.name + "/products", {-1, vectors * vectors})},
                 layer.name);
  std::vector<int64_t> pairs;
  for (int64_t i = 0; i < vectors; ++i) {
    for (int64_t j = layer.diagonal ? i : i + 1; j < vectors; ++j) pairs.push_back(i * vectors + j);
  }
  return graph->Add("Gather", {products, graph->Ints(layer.name + "/pairs", pairs)}, layer.name,
                    {OnnxAttribute::Int("axis", 1)});
}

}  // namespace keelson
