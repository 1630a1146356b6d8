#include "core/model/spec/model_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/features.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/layer_rules.h"

namespace keelson {
namespace {

// Reads the layers one after the other, each after those whose outputs it takes.
class SpecBuilder {
 public:
  absl::StatusOr<ModelSpec> Build(const v1::ModelConfig& config) {
    spec_.name = config.name();
    ASSIGN_OR_RETURN(spec_.records.features, ReadFeatures(config));
    std::vector<std::string> features;
    for (const FeatureSpec& feature : spec_.records.features) features.push_back(feature.name);
    ASSIGN_OR_RETURN(const std::vector<LayerNode> nodes, OrderLayers(config, features));
    for (const LayerNode& node : nodes) {
      RETURN_IF_ERROR(AddLayer(config.layers(node.position), node));
    }
    if (std::none_of(spec_.variables.begin(), spec_.variables.end(),
                     [](const VariableSpec& variable) { return variable.trained(); })) {
      return FieldError("model.layers",
                        "expected a layer with variables to train, such as dense, found none");
    }
    RETURN_IF_ERROR(SetLoss(config.loss()));
    spec_.records.labels.push_back({std::string(kLabel), spec_.num_classes()});
    return std::move(spec_);
  }

 private:
  absl::Status AddLayer(const v1::LayerConfig& config, const LayerNode& node) {
    LayerSpec layer;
    layer.kind = node.kind;
    layer.name = node.name;
    layer.inputs = node.inputs;
    for (const ValueId input : node.inputs) layer.input_shapes.push_back(spec_.ShapeOf(input));
    layer.input = layer.input_shapes.front();
    const std::string path = absl::StrCat("model.layers[", node.position, "]");
    const std::string kind_path = absl::StrCat(path, ".", LayerKindName(layer.kind));
    RETURN_IF_ERROR(CheckInputs(path, layer));
    ASSIGN_OR_RETURN(const LayerSpec* const owner, FindOwner(config, path, layer));
    const LayerContext context = {kind_path, owner, &spec_.variables};
    RETURN_IF_ERROR(RulesOf(layer.kind).infer(config, context, &layer));
    RETURN_IF_ERROR(CheckElements(kind_path, "an output", layer.output));
    spec_.layers.push_back(std::move(layer));
    return absl::OkStatus();
  }

  absl::Status CheckInputs(const std::string& path, const LayerSpec& layer) const {
    const LayerRules rules = RulesOf(layer.kind);
    const size_t found = layer.inputs.size();
    if (found == rules.inputs || (rules.more_inputs && found > rules.inputs)) {
      return absl::OkStatus();
    }
    return FieldError(absl::StrCat(path, ".inputs"),
                      absl::StrCat("expected ", rules.inputs, rules.more_inputs ? " or more" : "",
                                   " of ", LayerKindName(layer.kind), ", found ", found));
  }

  // The layer whose variables this one shares, in spec_; null: it has its own.
  absl::StatusOr<const LayerSpec*> FindOwner(const v1::LayerConfig& config,
                                             const std::string& layer_path,
                                             const LayerSpec& layer) const {
    const std::string& name = config.variables_of();
    if (name.empty()) return nullptr;
    const std::string path = absl::StrCat(layer_path, ".variables_of");
    if (!RulesOf(layer.kind).shares_variables) {
      return FieldError(path,
                        absl::StrCat("expected dense or conv2d, which can share variables, found ",
                                     LayerKindName(layer.kind)));
    }
    if (config.dense().kernel_initializer() != v1::KERNEL_INITIALIZER_UNSPECIFIED ||
        config.conv2d().kernel_initializer() != v1::KERNEL_INITIALIZER_UNSPECIFIED) {
      return FieldError(path, "expected no kernel_initializer beside it, found one");
    }
    const auto owner = std::find_if(
        spec_.layers.begin(), spec_.layers.end(),
        [&](const LayerSpec& other) { return other.name == name && other.kind == layer.kind; });
    if (owner == spec_.layers.end()) {
      return FieldError(
          path, absl::StrCat("expected the name of a ", LayerKindName(layer.kind),
                             " layer that is computed before this one, found \"", name, "\""));
    }
    return &*owner;
  }

  absl::Status SetLoss(const v1::LossConfig& config) {
    switch (config.kind()) {
      case v1::LossConfig::SOFTMAX_CROSS_ENTROPY:
        spec_.loss = LossKind::kSoftmaxCrossEntropy;
        break;
      case v1::LossConfig::SIGMOID_CROSS_ENTROPY:
        spec_.loss = LossKind::kSigmoidCrossEntropy;
        break;
      case v1::LossConfig::MEAN_SQUARED_ERROR:
        spec_.loss = LossKind::kMeanSquaredError;
        break;
      default:
        return FieldError("model.loss.kind",
                          "expected SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY or "
                          "MEAN_SQUARED_ERROR, found none");
    }
    const Shape& output = spec_.layers.back().output;
    spec_.output_size = output.num_elements();
    const bool softmax = spec_.loss == LossKind::kSoftmaxCrossEntropy;
    if (output.rank() == 1 && (softmax ? spec_.output_size >= 2 : spec_.output_size == 1)) {
      return absl::OkStatus();
    }
    return FieldError(
        "model.loss",
        absl::StrCat(LossKindName(spec_.loss), " takes ", softmax ? "[classes], 2 or more" : "[1]",
                     ", found a last layer with the output ", output.ToString()));
  }

  ModelSpec spec_;
};

}  // namespace

int64_t ModelSpec::parameters_of(const LayerSpec& layer) const {
  const auto owner = std::find_if(layers.begin(), layers.end(), [&](const LayerSpec& other) {
    return other.kernel.has_value() && other.kernel == layer.kernel;
  });
  if (owner != layers.end() && owner->name != layer.name) return 0;
  int64_t elements = 0;
  for (const size_t variable : layer.variables()) {
    elements += variables[variable].shape.num_elements();
  }
  return elements;
}

int64_t ModelSpec::num_classes() const {
  switch (loss) {
    case LossKind::kSoftmaxCrossEntropy:
      return output_size;
    case LossKind::kSigmoidCrossEntropy:
      return 2;
    case LossKind::kMeanSquaredError:
      return 0;
  }
  return 0;
}

const char* LossKindName(LossKind kind) {
  switch (kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return "SOFTMAX_CROSS_ENTROPY";
    case LossKind::kSigmoidCrossEntropy:
      return "SIGMOID_CROSS_ENTROPY";
    case LossKind::kMeanSquaredError:
      return "MEAN_SQUARED_ERROR";
  }
  return "";
}

absl::StatusOr<ModelSpec> InferModelSpec(const v1::ModelConfig& config) {
  return SpecBuilder().Build(config);
}

}  // namespace keelson
