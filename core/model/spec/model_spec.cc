#include "core/model/spec/model_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/features.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/layer_rules.h"
#include "core/model/spec/tables.h"

namespace keelson {
namespace {

// Reads the layers one after the other, each after those whose outputs it takes.
class SpecBuilder {
 public:
  absl::StatusOr<ModelSpec> Build(const v1::ModelConfig& config) {
    spec_.name = config.name();
    ASSIGN_OR_RETURN(spec_.tables, ReadTables(config));
    ASSIGN_OR_RETURN(spec_.records.features, ReadFeatures(config));
    std::vector<std::string> features;
    for (const FeatureSpec& feature : spec_.records.features) features.push_back(feature.name);
    ASSIGN_OR_RETURN(const LayerGraph graph, OrderLayers(config, features));
    for (const LayerNode& node : graph.layers) {
      RETURN_IF_ERROR(AddLayer(config.layers(node.position), node));
    }
    RETURN_IF_ERROR(CheckTablesAreUsed());
    if (spec_.tables.empty() &&
        std::none_of(spec_.variables.begin(), spec_.variables.end(),
                     [](const VariableSpec& variable) { return variable.trained(); })) {
      return FieldError("model.layers",
                        "expected a layer with variables to train, such as dense, found none");
    }
    RETURN_IF_ERROR(AddLosses(config, graph.of_losses));
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
    RETURN_IF_ERROR(CheckInputKinds(kind_path, layer));
    ASSIGN_OR_RETURN(const LayerSpec* const owner, FindOwner(config, path, layer));
    const LayerContext context = {kind_path, owner, &spec_.variables, spec_.tables};
    RETURN_IF_ERROR(RulesOf(layer.kind).infer(config, context, &layer));
    RETURN_IF_ERROR(CheckElements(kind_path, "an output", layer.output));
    if (layer.embeddings) LimitIds(layer);
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

  absl::Status CheckInputKinds(const std::string& path, const LayerSpec& layer) const {
    const FeatureKind expected = RulesOf(layer.kind).input_kind;
    for (const ValueId input : layer.inputs) {
      const FeatureKind found = spec_.values().IsFeature(input) ? spec_.records.features[input].kind
                                                                : FeatureKind::kNumbers;
      if (found == expected) continue;
      return FieldError(path, absl::StrCat("expected ", InputText(expected), ", found ",
                                           FoundText(found), " \"", spec_.NameOf(input), "\""));
    }
    return absl::OkStatus();
  }

  static absl::string_view InputText(FeatureKind expected) {
    switch (expected) {
      case FeatureKind::kNumbers:
        return "numbers";
      case FeatureKind::kId:
        return "a feature of the kind id";
      case FeatureKind::kBag:
        return "a feature of the kind bag";
    }
    return "";
  }

  static absl::string_view FoundText(FeatureKind found) {
    switch (found) {
      case FeatureKind::kNumbers:
        return "the numbers";
      case FeatureKind::kId:
        return "the id";
      case FeatureKind::kBag:
        return "the bag";
    }
    return "";
  }

  absl::Status CheckTablesAreUsed() const {
    for (size_t t = 0; t < spec_.tables.size(); ++t) {
      if (std::any_of(spec_.layers.begin(), spec_.layers.end(),
                      [&](const LayerSpec& layer) { return layer.table == t; })) {
        continue;
      }
      return FieldError(absl::StrCat("model.tables[", t, "]"),
                        absl::StrCat("expected an embedding or embedding_bag layer that names \"",
                                     spec_.tables[t].name, "\", found none"));
    }
    return absl::OkStatus();
  }

  // The layer has rows for some ids of its feature.
  void LimitIds(const LayerSpec& layer) {
    const int64_t rows = spec_.variables[*layer.embeddings].shape.dim(0);
    int64_t& num_ids = spec_.records.features[layer.inputs.front()].num_ids;
    num_ids = num_ids == 0 ? rows : std::min(num_ids, rows);
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
                        absl::StrCat("expected dense, conv2d, embedding or embedding_bag, which "
                                     "can share variables, found ",
                                     LayerKindName(layer.kind)));
    }
    if (config.dense().kernel_initializer() != v1::KERNEL_INITIALIZER_UNSPECIFIED ||
        config.conv2d().kernel_initializer() != v1::KERNEL_INITIALIZER_UNSPECIFIED) {
      return FieldError(path, "expected no kernel_initializer beside it, found one");
    }
    const auto owner =
        std::find_if(spec_.layers.begin(), spec_.layers.end(), [&](const LayerSpec& other) {
          return other.name == name && SharesVariables(layer.kind, other.kind);
        });
    if (owner == spec_.layers.end()) {
      return FieldError(
          path, absl::StrCat("expected the name of ",
                             layer.kind == LayerKind::kDense    ? "a dense"
                             : layer.kind == LayerKind::kConv2D ? "a conv2d"
                                                                : "an embedding or embedding_bag",
                             " layer that is computed before this one, found \"", name, "\""));
    }
    return &*owner;
  }

  absl::Status AddLosses(const v1::ModelConfig& config,
                         const std::vector<std::vector<ValueId>>& inputs) {
    if (config.losses().empty()) return AddLoss(config.loss(), "model.loss", inputs.front());
    if (config.has_loss()) {
      return FieldError("model.loss", "expected nothing beside model.losses, found a loss");
    }
    for (int i = 0; i < config.losses_size(); ++i) {
      RETURN_IF_ERROR(AddLoss(config.losses(i), PathOfLoss(config, i), inputs[i]));
    }
    return absl::OkStatus();
  }

  absl::Status AddLoss(const v1::LossConfig& config, const std::string& path,
                       const std::vector<ValueId>& values) {
    std::vector<LossInput> inputs;
    for (const ValueId value : values) {
      inputs.push_back({value, spec_.NameOf(value), spec_.ShapeOf(value)});
    }
    ASSIGN_OR_RETURN(LossSpec loss, ReadLoss(config, path, inputs));
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (DependsOnVariables(inputs[k].value)) continue;
      const bool pairs = loss.kind == LossKind::kInBatchSoftmax;
      return FieldError(absl::StrCat(path, pairs ? (k == 0 ? ".queries" : ".items") : ".scores"),
                        absl::StrCat("expected a layer that depends on variables, found \"",
                                     inputs[k].layer, "\""));
    }
    for (const LossSpec& other : spec_.losses) {
      if (other.label_name != loss.label_name) continue;
      return FieldError(path + ".label", absl::StrCat("another loss already has the label \"",
                                                      loss.label_name, "\""));
    }
    if (loss.kind != LossKind::kInBatchSoftmax) {
      loss.label = AddLabel(loss.label_name);
      spec_.records.labels[*loss.label].num_classes = loss.num_classes();
    }
    if (!loss.log_probability_label_name.empty()) {
      loss.log_probability_label = AddLabel(loss.log_probability_label_name);
    }
    if (!loss.weight_label_name.empty()) {
      loss.weight_label = AddLabel(loss.weight_label_name);
      spec_.records.labels[*loss.weight_label].weighs = true;
    }
    spec_.losses.push_back(std::move(loss));
    return absl::OkStatus();
  }

  // The position of the label of this name, which may be there already.
  size_t AddLabel(const std::string& name) {
    std::vector<LabelSpec>& labels = spec_.records.labels;
    const auto found = std::find_if(labels.begin(), labels.end(),
                                    [&](const LabelSpec& label) { return label.name == name; });
    const auto position = static_cast<size_t>(found - labels.begin());
    if (found == labels.end()) labels.push_back({name});
    return position;
  }

  bool DependsOnVariables(ValueId value) const {
    const GraphValues values = spec_.values();
    std::vector<bool> depends(values.OutputOf(spec_.layers.size()), false);
    for (size_t i = 0; i < spec_.layers.size(); ++i) {
      const std::vector<ValueId>& inputs = spec_.layers[i].inputs;
      depends[values.OutputOf(i)] =
          spec_.layers[i].has_parameters() ||
          std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) { return depends[input]; });
    }
    return depends[value];
  }

  ModelSpec spec_;
};

}  // namespace

int64_t ModelSpec::parameters_of(const LayerSpec& layer) const {
  const auto owner = std::find_if(layers.begin(), layers.end(), [&](const LayerSpec& other) {
    return other.shared_variable().has_value() &&
           other.shared_variable() == layer.shared_variable();
  });
  if (owner != layers.end() && owner->name != layer.name) return 0;
  int64_t elements = 0;
  for (const size_t variable : layer.variables()) {
    elements += variables[variable].shape.num_elements();
  }
  return elements;
}

std::string ModelSpec::LossText() const {
  const bool several = losses.size() > 1;
  std::string text;
  for (const LossSpec& loss : losses) {
    absl::StrAppend(&text, text.empty() ? "" : " + ");
    if (several && loss.weight != 1) absl::StrAppend(&text, loss.weight, " ");
    absl::StrAppend(&text, LossKindName(loss.kind));
    const bool pairs = loss.kind == LossKind::kInBatchSoftmax;
    if (several || pairs) absl::StrAppend(&text, " of ", NameOf(loss.inputs.front()));
    if (pairs) absl::StrAppend(&text, " and ", NameOf(loss.inputs.back()));
    if (loss.weight_label) absl::StrAppend(&text, " weighted by ", loss.weight_label_name);
  }
  return text;
}

absl::StatusOr<ModelSpec> InferModelSpec(const v1::ModelConfig& config) {
  if (config.has_external()) {
    return FieldError("model.external", "expected a model of layers, found a script's variables");
  }
  return SpecBuilder().Build(config);
}

}  // namespace keelson
