// The reference of layers: what each kind takes, computes and gives.
#ifndef KEELSON_CLI_REFERENCE_LAYER_REFERENCE_H_
#define KEELSON_CLI_REFERENCE_LAYER_REFERENCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/config/config_reference.h"
#include "core/model/spec/layer_kind.h"
#include "core/model/spec/layer_spec.h"
#include "core/tensor/variable.h"

namespace keelson {

// A layer, and what follows from it.
struct LayerExample {
  LayerSpec layer;
  std::string config;  // "dense { units: 10 }"
  std::vector<VariableSpec> variables;
};

// An example of the kind "dense". INTERNAL: there is none, or the rules of the kind refuse it.
absl::StatusOr<LayerExample> ExampleOf(absl::string_view kind);

// "one", "two or more", "a feature of the kind id": what the kind takes.
std::string InputsText(LayerKind kind);

// All layers in Markdown, in the order of LayerConfig's fields: a table of them with their inputs
// and the shapes of an example, then each with its formula, its fields and its variables. The text
// of docs/layers.md. INTERNAL: as ExampleOf.
absl::StatusOr<std::string> LayerReference(const ConfigReference& reference);

}  // namespace keelson

#endif  // KEELSON_CLI_REFERENCE_LAYER_REFERENCE_H_
