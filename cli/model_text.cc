#include "cli/model_text.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/text_table.h"
#include "core/model/spec/layer_relations.h"

namespace keelson {
namespace {

// A row for each table of rows; empty without one.
std::string TablesText(const ModelSpec& model) {
  if (model.tables.empty()) return "";
  TextTable text;
  text.AddRow({"table", "rows", "dim", "layers"});
  for (size_t t = 0; t < model.tables.size(); ++t) {
    std::vector<std::string> layers;
    for (const LayerSpec& layer : model.layers) {
      if (layer.table == t) layers.push_back(layer.name);
    }
    text.AddRow({model.tables[t].name, "any", absl::StrCat(model.tables[t].dim),
                 absl::StrJoin(layers, ", ")});
  }
  return absl::StrCat("\n", text.ToString());
}

// A node for each table, with an edge to each of its layers.
std::string TablesDot(const ModelSpec& model) {
  std::string dot;
  for (const TableSpec& table : model.tables) {
    absl::StrAppend(&dot, "  \"table ", table.name, "\" [label=\"", table.name, "\\nany rows [",
                    table.dim, "]\", shape=cylinder];\n");
  }
  for (const LayerSpec& layer : model.layers) {
    if (!layer.table) continue;
    absl::StrAppend(&dot, "  \"table ", model.tables[*layer.table].name, "\" -> \"", layer.name,
                    "\" [style=dashed, dir=none];\n");
  }
  return dot;
}

}  // namespace

std::string ModelTable(const ModelSpec& model) {
  TextTable table;
  table.AddRow({"layer", "kind", "inputs", "output", "parameters", "operations"});
  for (const FeatureSpec& feature : model.records.features) {
    table.AddRow({feature.name, "", "", feature.FormText(), "", ""});
  }
  int64_t parameters = 0, operations = 0;
  for (const LayerSpec& layer : model.layers) {
    table.AddRow({layer.name, LayerKindName(layer.kind),
                  absl::StrJoin(InputNames(model, layer), ", "), layer.output.ToString(),
                  absl::StrCat(model.parameters_of(layer)), absl::StrCat(layer.operations())});
    parameters += model.parameters_of(layer);
    operations += layer.operations();
  }
  return absl::StrCat(table.ToString(), TablesText(model), "\n", parameters, " parameters, ",
                      operations, " operations forward for an example, loss ", model.LossText(),
                      "\n");
}

std::string ModelDot(const ModelSpec& model) {
  std::string dot = "digraph model {\n  node [shape=box];\n";
  for (const FeatureSpec& feature : model.records.features) {
    absl::StrAppend(&dot, "  \"", feature.name, "\" [label=\"", feature.name, "\\n",
                    feature.FormText(), "\", style=rounded];\n");
  }
  for (const LayerSpec& layer : model.layers) {
    absl::StrAppend(&dot, "  \"", layer.name, "\" [label=\"", layer.name, "\\n",
                    LayerKindName(layer.kind), " ", layer.output.ToString(), "\"];\n");
  }
  for (const LayerSpec& layer : model.layers) {
    for (const std::string& input : InputNames(model, layer)) {
      absl::StrAppend(&dot, "  \"", input, "\" -> \"", layer.name, "\";\n");
    }
  }
  // A layer and the one whose variables it shares.
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSpec* const owner = OwnerOfVariables(model, i);
    if (owner == nullptr) continue;
    absl::StrAppend(&dot, "  \"", owner->name, "\" -> \"", model.layers[i].name,
                    "\" [style=dashed, dir=none, constraint=false];\n");
  }
  return absl::StrCat(dot, TablesDot(model), "}\n");
}

}  // namespace keelson
