#include "dashboard/api/model_view.h"

#include <google/protobuf/text_format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "core/config/config_reference.h"
#include "core/model/spec/layer_graph.h"
#include "core/model/spec/layer_kind.h"
#include "core/model/spec/layer_relations.h"
#include "core/model/spec/loss_spec.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/record_schema.h"
#include "core/optim/optimizer_groups.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "dashboard/runs/run_model.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {
namespace {

Json FeatureJson(const FeatureSpec& feature) {
  Json json = {{"name", feature.name}};
  switch (feature.kind) {
    case FeatureKind::kNumbers:
      json["kind"] = "numbers";
      json["shape"] = feature.shape.dims();
      break;
    case FeatureKind::kId:
      json["kind"] = "id";
      if (feature.num_ids > 0) json["ids"] = feature.num_ids;
      break;
    case FeatureKind::kBag:
      json["kind"] = "bag";
      if (feature.num_ids > 0) json["ids"] = feature.num_ids;
      json["weighted"] = feature.weighted;
      break;
  }
  return json;
}

// What the configuration says of the layer itself: "dense { units: 10 }".
std::string SettingsText(v1::LayerConfig config) {
  config.clear_name();
  config.clear_inputs();
  config.clear_variables_of();
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  if (!printer.PrintToString(config, &text)) return "";
  absl::StripTrailingAsciiWhitespace(&text);
  return text;
}

// By layer of the spec. Empty: the configuration has no layers in an order.
std::vector<std::string> SettingsOf(const RunModel& model) {
  std::vector<std::string> features;
  for (const FeatureSpec& feature : model.spec.records.features) features.push_back(feature.name);
  const auto graph = OrderLayers(model.config.model(), features);
  std::vector<std::string> settings;
  if (!graph.ok()) return settings;
  for (const LayerNode& node : graph->layers) {
    settings.push_back(SettingsText(model.config.model().layers(node.position)));
  }
  return settings;
}

// How training changes the variable.
const char* UpdateOf(const v1::OptimizerConfig& optimizer, const VariableSpec& variable) {
  if (!variable.trained()) return "average";
  return IsFrozen(optimizer, variable) ? "frozen" : "optimizer";
}

Json VariableJson(const RunModel& model, const VariableSpec& variable) {
  return {{"name", variable.name},
          {"shape", variable.shape.dims()},
          {"update", UpdateOf(model.config.optimizer(), variable)}};
}

Json VariablesJson(const RunModel& model, const LayerSpec& layer) {
  Json variables = Json::array();
  for (const size_t position : layer.variables()) {
    variables.push_back(VariableJson(model, model.spec.variables[position]));
  }
  return variables;
}

Json LayersJson(const RunModel& model) {
  const ModelSpec& spec = model.spec;
  const std::vector<std::string> settings = SettingsOf(model);
  Json layers = Json::array();
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    Json json = {{"name", layer.name},
                 {"kind", LayerKindName(layer.kind)},
                 {"inputs", InputNames(spec, layer)},
                 {"output_shape", layer.output.dims()},
                 {"parameters", spec.parameters_of(layer)},
                 {"operations", layer.operations()},
                 {"variables", VariablesJson(model, layer)}};
    if (i < settings.size()) json["settings"] = settings[i];
    const LayerSpec* const owner = OwnerOfVariables(spec, i);
    if (owner != nullptr) json["variables_of"] = owner->name;
    if (layer.table) json["table"] = spec.tables[*layer.table].name;
    layers.push_back(std::move(json));
  }
  return layers;
}

// A script's model: of each of its modules, by their names, the variables. Averages come behind all
// others, whatever module they are of.
Json ModulesJson(const RunModel& model) {
  Json modules = Json::array();
  std::map<std::string, size_t> positions;
  for (const VariableSpec& variable : model.spec.variables) {
    const size_t dot = variable.name.rfind('.');
    const std::string name = variable.name.substr(0, dot == std::string::npos ? 0 : dot);
    const auto [position, is_new] = positions.try_emplace(name, modules.size());
    if (is_new) {
      modules.push_back({{"name", name},
                         {"kind", "module"},
                         {"inputs", Json::array()},
                         {"parameters", 0},
                         {"operations", 0},
                         {"variables", Json::array()}});
    }
    Json& own = modules[position->second];
    own["parameters"] = own["parameters"].get<int64_t>() + variable.shape.num_elements();
    own["variables"].push_back(VariableJson(model, variable));
  }
  return modules;
}

Json TablesJson(const ModelSpec& spec) {
  Json tables = Json::array();
  for (const TableSpec& table : spec.tables) {
    tables.push_back({{"name", table.name}, {"dim", table.dim}});
  }
  return tables;
}

Json LossesJson(const ModelSpec& spec) {
  Json losses = Json::array();
  for (const LossSpec& loss : spec.losses) {
    Json inputs = Json::array();
    for (const ValueId input : loss.inputs) inputs.push_back(spec.NameOf(input));
    Json json = {{"kind", LossKindName(loss.kind)},
                 {"inputs", std::move(inputs)},
                 {"label", loss.label_name},
                 {"weight", loss.weight}};
    if (loss.kind == LossKind::kHuber) json["delta"] = loss.delta;
    if (loss.kind == LossKind::kInBatchSoftmax) json["temperature"] = loss.temperature;
    if (loss.log_probability_label.has_value()) {
      json["log_probability_label"] = loss.log_probability_label_name;
    }
    if (loss.weight_label.has_value()) json["record_weights"] = loss.weight_label_name;
    losses.push_back(std::move(json));
  }
  return losses;
}

// What each kind of layer that the model has computes.
Json FormulasJson(const ModelSpec& spec) {
  Json formulas = Json::object();
  const auto reference = ConfigReference::Open(ConfigDescriptors());
  if (!reference.ok()) return formulas;
  for (const LayerSpec& layer : spec.layers) {
    const std::string kind = LayerKindName(layer.kind);
    if (formulas.contains(kind)) continue;
    std::string text = reference->LayerText(kind);
    if (!text.empty()) formulas[kind] = std::move(text);
  }
  return formulas;
}

}  // namespace

Json ModelJson(const Run& run, const RunData& data) {
  if (!data.model.has_value()) return nullptr;
  const RunModel& model = *data.model;
  Json features = Json::array();
  for (const FeatureSpec& feature : model.spec.records.features) {
    features.push_back(FeatureJson(feature));
  }
  int64_t operations = 0;
  for (const LayerSpec& layer : model.spec.layers) operations += layer.operations();
  return {{"run", run.id()},
          {"name", model.spec.name},
          {"parameters", model.num_parameters()},
          {"operations", operations},
          {"features", std::move(features)},
          {"layers", model.external() ? ModulesJson(model) : LayersJson(model)},
          {"tables", TablesJson(model.spec)},
          {"losses", LossesJson(model.spec)},
          {"formulas", FormulasJson(model.spec)},
          {"config", model.text}};
}

}  // namespace keelson
