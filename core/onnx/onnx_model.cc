#include "core/onnx/onnx_model.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/row_indexer.h"
#include "core/onnx/graph_builder.h"
#include "core/onnx/layer_nodes.h"
#include "core/onnx/lookup_nodes.h"

namespace keelson {
namespace {

constexpr int64_t kOperators = 17, kMachineLearningOperators = 2, kFormat = 8;

absl::Status CheckSize(const ModelSpec& model, const OnnxValues& values) {
  // A row has its values, and its id and position in the LabelEncoder, which take up to ten bytes
  // each.
  int64_t bytes = 0;
  for (const Tensor& variable : values.variables) {
    bytes += variable.shape().num_elements() * int64_t{sizeof(float)};
  }
  for (size_t t = 0; t < model.tables.size(); ++t) {
    bytes += static_cast<int64_t>(values.tables[t].ids.size()) *
             (model.tables[t].dim * int64_t{sizeof(float)} + 20);
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (bytes < kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model has ", bytes, " bytes of values, expected fewer than ", kMost,
                   ", as many as a file of ONNX can have; export it as safetensors instead"));
}

// Writes one model.
class Writer {
 public:
  Writer(const ModelSpec& model, const OnnxValues& values)
      : model_(model), values_(values), graph_(model.name.empty() ? "model" : model.name) {}

  onnx::Graph Write() {
    for (const FeatureSpec& feature : model_.records.features) {
      names_.features.push_back(AddFeature(feature, &graph_));
    }
    for (size_t i = 0; i < model_.variables.size(); ++i) {
      const VariableSpec& variable = model_.variables[i];
      const Tensor& value = values_.variables[i];
      names_.variables.push_back(graph_.Floats(variable.name, value.shape().dims(), value.span()));
    }
    const std::vector<TableFeatures> features = TableFeaturesOf(model_);
    for (size_t t = 0; t < model_.tables.size(); ++t) {
      names_.tables.push_back(AddTable(model_.tables[t].name, values_.tables[t],
                                       features[t].features, names_, &graph_));
    }
    for (const LayerSpec& layer : model_.layers) AddLayerNodes(model_, layer, &names_, &graph_);
    for (size_t k = 0; k < model_.losses.size(); ++k) AddOutputs(model_.losses[k], k == 0);
    return graph_.Take();
  }

 private:
  using Dimensions = std::vector<OnnxGraphBuilder::Dimension>;

  const std::string& OutputOf(ValueId value) const {
    return names_.outputs[model_.values().LayerOf(value)];
  }

  void AddOutputs(const LossSpec& loss, bool main) {
    const Dimensions dims = {{.name = "records"}, {.size = loss.input_floats()}};
    const std::string end = main ? "" : absl::StrCat("_", loss.label_name);
    if (loss.kind == LossKind::kInBatchSoftmax) {
      graph_.AddOutput("queries" + end, OutputOf(loss.inputs[0]), dims, "The vectors of queries");
      graph_.AddOutput("items" + end, OutputOf(loss.inputs[1]), dims, "The vectors of items");
      return;
    }
    const std::string& scores = OutputOf(loss.inputs[0]);
    graph_.AddOutput("scores" + end, scores, dims, "What the loss takes");
    if (IsRegression(loss.kind)) return;
    const std::string name = "probabilities" + end;
    if (loss.kind == LossKind::kSigmoidCrossEntropy) {
      graph_.AddOutput(name, graph_.Add("Sigmoid", {scores}, name + "/of"), dims,
                       "The probability of the label 1");
    } else {
      graph_.AddOutput(
          name, graph_.Add("Softmax", {scores}, name + "/of", {OnnxAttribute::Int("axis", -1)}),
          dims, "The probability of each class");
    }
  }

  const ModelSpec& model_;
  const OnnxValues& values_;
  OnnxGraphBuilder graph_;
  OnnxNames names_;
};

}  // namespace

absl::StatusOr<onnx::Model> MakeOnnxModel(const ModelSpec& model, const OnnxValues& values) {
  RETURN_IF_ERROR(CheckSize(model, values));
  onnx::Model result;
  result.set_ir_version(kFormat);
  result.set_producer_name("Keelson");
  onnx::OperatorSet* const operators = result.add_opset_import();
  operators->set_version(kOperators);
  if (!model.tables.empty()) {
    onnx::OperatorSet* const of_learning = result.add_opset_import();
    of_learning->set_domain("ai.onnx.ml");
    of_learning->set_version(kMachineLearningOperators);
  }
  *result.mutable_graph() = Writer(model, values).Write();
  return result;
}

}  // namespace keelson
