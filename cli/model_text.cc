#include "cli/model_text.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/text_table.h"
#include "core/model/spec/layer_relations.h"

namespace keelson {
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
  return absl::StrCat(table.ToString(), "\n", parameters, " parameters, ", operations,
                      " operations forward for an example, loss ", model.LossText(), "\n");
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
  return dot + "}\n";
}

}  // namespace keelson
