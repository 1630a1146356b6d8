#include "core/onnx/layer_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/onnx/interaction_nodes.h"
#include "core/onnx/lookup_nodes.h"

namespace keelson {
namespace {

using Attribute = OnnxAttribute;
using Names = std::vector<std::string>;

// A layer that is being written.
struct Writing {
  const LayerSpec& layer;
  const Names& x;  // its inputs
  const OnnxNames& names;
  OnnxGraphBuilder* graph;

  const std::string& variable(size_t position) const { return names.variables[position]; }
  std::string Add(const char* op, const Names& inputs,
                  const std::vector<Attribute>& attributes = {}) const {
    return graph->Add(op, inputs, layer.name, attributes);
  }
  // Of the axes of one example behind the batch.
  int64_t rank() const { return static_cast<int64_t>(layer.input.rank()); }
};

// The output's shape, whatever the batch.
std::string Reshaped(const Writing& w) {
  std::vector<int64_t> dims = {-1};
  dims.insert(dims.end(), w.layer.output.dims().begin(), w.layer.output.dims().end());
  return w.Add("Reshape", {w.x[0], w.graph->Ints(w.layer.name + "/shape", dims)});
}

std::string Dense(const Writing& w) {
  Names inputs = {w.x[0], w.variable(*w.layer.kernel)};
  if (w.layer.bias) inputs.push_back(w.variable(*w.layer.bias));
  return w.Add("Gemm", inputs);
}

std::string Cross(const Writing& w) {
  std::string of = w.x[1];
  if (w.layer.down_kernel) of = w.Add("MatMul", {of, w.variable(*w.layer.down_kernel)});
  Names inputs = {of, w.variable(*w.layer.kernel)};
  if (w.layer.bias) inputs.push_back(w.variable(*w.layer.bias));
  return w.Add("Add", {w.Add("Mul", {w.x[0], w.Add("Gemm", inputs)}), w.x[1]});
}

// ONNX has channels first; ours come last.
std::string ChannelsFirst(const Writing& w, const std::string& x) {
  return w.Add("Transpose", {x}, {Attribute::Ints("perm", {0, 3, 1, 2})});
}
std::string ChannelsLast(const Writing& w, const std::string& x) {
  return w.Add("Transpose", {x}, {Attribute::Ints("perm", {0, 2, 3, 1})});
}

// Attributes of a window. What the last ones need behind the image follows from the output's size.
std::vector<Attribute> WindowOf(const LayerSpec& layer) {
  const auto behind = [&](size_t axis, int64_t before) {
    const int64_t covered = (layer.output.dim(axis) - 1) * layer.stride + layer.window;
    return std::max<int64_t>(0, covered - layer.input.dim(axis) - before);
  };
  return {Attribute::Ints("kernel_shape", {layer.window, layer.window}),
          Attribute::Ints("strides", {layer.stride, layer.stride}),
          Attribute::Ints("pads", {layer.pad_top, layer.pad_left, behind(0, layer.pad_top),
                                   behind(1, layer.pad_left)})};
}

std::string Conv2D(const Writing& w) {
  const std::string kernel =
      w.Add("Transpose", {w.variable(*w.layer.kernel)}, {Attribute::Ints("perm", {3, 2, 0, 1})});
  Names inputs = {ChannelsFirst(w, w.x[0]), kernel};
  if (w.layer.bias) inputs.push_back(w.variable(*w.layer.bias));
  return ChannelsLast(w, w.Add("Conv", inputs, WindowOf(w.layer)));
}

std::string Pool(const Writing& w, const char* op) {
  return ChannelsLast(w, w.Add(op, {ChannelsFirst(w, w.x[0])}, WindowOf(w.layer)));
}

std::string BatchNorm(const Writing& w) {
  const std::string shifted = w.Add("Sub", {w.x[0], w.variable(*w.layer.moving_mean)});
  const std::string epsilon = w.graph->Float(w.layer.name + "/epsilon", w.layer.epsilon);
  const std::string deviation =
      w.Add("Sqrt", {w.Add("Add", {w.variable(*w.layer.moving_variance), epsilon})});
  std::string y = w.Add("Div", {shifted, deviation});
  if (w.layer.gamma) y = w.Add("Mul", {y, w.variable(*w.layer.gamma)});
  if (w.layer.beta) y = w.Add("Add", {y, w.variable(*w.layer.beta)});
  return y;
}

std::string LayerNorm(const Writing& w) {
  const int64_t features = w.layer.input.dims().back();
  std::string gamma;
  if (w.layer.gamma) {
    gamma = w.variable(*w.layer.gamma);
  } else {
    const std::vector<float> ones(features, 1.0f);
    gamma = w.graph->Floats(w.layer.name + "/gamma", {features}, ones);
  }
  Names inputs = {w.x[0], gamma};
  if (w.layer.beta) inputs.push_back(w.variable(*w.layer.beta));
  return w.Add("LayerNormalization", inputs,
               {Attribute::Int("axis", -1), Attribute::Float("epsilon", w.layer.epsilon)});
}

std::string Gelu(const Writing& w) {
  const std::string root = w.graph->Float(w.layer.name + "/root", std::sqrt(2.0f));
  const std::string one = w.graph->Float(w.layer.name + "/one", 1);
  const std::string half = w.graph->Float(w.layer.name + "/half", 0.5f);
  const std::string erf = w.Add("Erf", {w.Add("Div", {w.x[0], root})});
  return w.Add("Mul", {w.x[0], w.Add("Mul", {w.Add("Add", {erf, one}), half})});
}

std::string GlobalAveragePool(const Writing& w) {
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < w.rank(); ++axis) axes.push_back(axis);
  return w.Add("ReduceMean", {w.x[0]},
               {Attribute::Ints("axes", axes), Attribute::Int("keepdims", 0)});
}

std::string Transpose(const Writing& w) {
  std::vector<int64_t> axes = {0};
  for (const size_t axis : w.layer.axes) axes.push_back(static_cast<int64_t>(axis) + 1);
  return w.Add("Transpose", {w.x[0]}, {Attribute::Ints("perm", axes)});
}

std::string Slice(const Writing& w) {
  const std::string& name = w.layer.name;
  const int64_t end = w.layer.slice_begin + w.layer.output.dims().back();
  return w.Add("Slice", {w.x[0], w.graph->Ints(name + "/begin", {w.layer.slice_begin}),
                         w.graph->Ints(name + "/end", {end}), w.graph->Ints(name + "/axis", {-1})});
}

std::string Scale(const Writing& w) {
  return w.Add("Mul", {w.x[0], w.graph->Float(w.layer.name + "/factor", w.layer.scale_factor)});
}

std::string Fold(const Writing& w, const char* op) {
  std::string y = w.x[0];
  for (size_t k = 1; k < w.x.size(); ++k) y = w.Add(op, {y, w.x[k]});
  return y;
}

std::string OutputOf(const Writing& w) {
  switch (w.layer.kind) {
    case LayerKind::kDense:
      return Dense(w);
    case LayerKind::kConv2D:
      return Conv2D(w);
    case LayerKind::kMaxPool:
      return Pool(w, "MaxPool");
    case LayerKind::kAvgPool:
      return Pool(w, "AveragePool");
    case LayerKind::kFlatten:
    case LayerKind::kReshape:
      return Reshaped(w);
    case LayerKind::kRelu:
      return w.Add("Relu", w.x);
    case LayerKind::kTanh:
      return w.Add("Tanh", w.x);
    case LayerKind::kSigmoid:
      return w.Add("Sigmoid", w.x);
    case LayerKind::kDropout:
      return w.Add("Identity", w.x);
    case LayerKind::kBatchNorm:
      return BatchNorm(w);
    case LayerKind::kAdd:
      return Fold(w, "Add");
    case LayerKind::kMultiply:
      return Fold(w, "Mul");
    case LayerKind::kConcat:
      return w.Add("Concat", w.x, {Attribute::Int("axis", -1)});
    case LayerKind::kSlice:
      return Slice(w);
    case LayerKind::kScale:
      return Scale(w);
    case LayerKind::kGelu:
      return Gelu(w);
    case LayerKind::kSilu:
      return w.Add("Mul", {w.x[0], w.Add("Sigmoid", w.x)});
    case LayerKind::kSoftmax:
      return w.Add("Softmax", w.x, {Attribute::Int("axis", -1)});
    case LayerKind::kLayerNorm:
      return LayerNorm(w);
    case LayerKind::kGlobalAveragePool:
      return GlobalAveragePool(w);
    case LayerKind::kCross:
      return Cross(w);
    case LayerKind::kTranspose:
      return Transpose(w);
    case LayerKind::kDot:
      return AddDot(w.layer, w.x, w.graph);
    case LayerKind::kCosine:
      return AddCosine(w.layer, w.x, w.graph);
    case LayerKind::kFactorizationMachine:
      return AddFactorizationMachine(w.layer, w.x, w.graph);
    case LayerKind::kDotInteraction:
      return AddDotInteraction(w.layer, w.x, w.graph);
    case LayerKind::kEmbedding:
    case LayerKind::kEmbeddingBag:
      return AddLookup(w.layer, w.names, w.graph);
  }
  return "";
}

}  // namespace

void AddLayerNodes(const ModelSpec& model, const LayerSpec& layer, OnnxNames* names,
                   OnnxGraphBuilder* graph) {
  Names x;
  for (const ValueId input : layer.inputs) {
    x.push_back(model.values().IsFeature(input) ? names->features[input].numbers
                                                : names->outputs[model.values().LayerOf(input)]);
  }
  std::string output = OutputOf({layer, x, *names, graph});
  names->outputs.push_back(std::move(output));
}

}  // namespace keelson
