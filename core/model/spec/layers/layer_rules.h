// What follows from a layer's configuration and the shapes of its inputs, kind by kind: the shape
// of its output, its variables, its numbers, and how much it computes.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYERS_LAYER_RULES_H_
#define KEELSON_CORE_MODEL_SPEC_LAYERS_LAYER_RULES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/model/spec/layer_kind.h"
#include "core/model/spec/layer_spec.h"
#include "core/model/spec/record_schema.h"
#include "core/tensor/shape.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Where a layer is read: its place in the configuration, and in the model that is being built.
struct LayerContext {
  // Adds "<layer>/<name>" to the model's variables; returns its position.
  size_t AddVariable(const LayerSpec& layer, absl::string_view name, Shape shape,
                     Initializer initializer,
                     std::optional<float> average_decay = std::nullopt) const;

  // Of the kind's message: "model.layers[2].dense".
  std::string path;
  // The layer whose variables this one shares, for which SharesVariables is true; null: it has its
  // own.
  const LayerSpec* owner = nullptr;
  // The model's.
  std::vector<VariableSpec>* variables = nullptr;
  absl::Span<const TableSpec> tables = {};
};

struct LayerRules {
  // How many inputs it takes; with `more_inputs` at least so many.
  size_t inputs = 1;
  bool more_inputs = false;
  // What its inputs are. Those that are not numbers are features.
  FeatureKind input_kind = FeatureKind::kNumbers;
  // Whether it can have the variables of another layer of its kind.
  bool shares_variables = false;
  // Sets the output and all that the kind has in LayerSpec; the kind, the name and the inputs with
  // their shapes are set, and their number is right. INVALID_ARGUMENT, the text beginning with the
  // field's path: a number that is missing or out of its range, or inputs of wrong shapes. How many
  // elements the output has is for the caller to check.
  absl::Status (*infer)(const v1::LayerConfig& config, const LayerContext& context,
                        LayerSpec* layer) = nullptr;
  // LayerSpec::operations; null: none.
  int64_t (*operations)(const LayerSpec& layer) = nullptr;
};

LayerRules RulesOf(LayerKind kind);

// Whether a layer of the kind `layer` can have the variables of one of the kind `owner`.
bool SharesVariables(LayerKind layer, LayerKind owner);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYERS_LAYER_RULES_H_
