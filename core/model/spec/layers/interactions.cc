// dot, cosine, factorization_machine and dot_interaction: inner products of two or more vectors.
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"

namespace keelson {
namespace {

absl::Status CheckVectors(const LayerContext& context, const LayerSpec* layer) {
  for (const Shape& input : layer->input_shapes) {
    if (input == layer->input && input.rank() == 1) continue;
    return FieldError(context.path,
                      absl::StrCat("expected inputs [features] of one size, found ",
                                   layer->input.ToString(), " and ", input.ToString()));
  }
  return absl::OkStatus();
}

absl::Status InferProduct(const v1::LayerConfig& /*config*/, const LayerContext& context,
                          LayerSpec* layer) {
  RETURN_IF_ERROR(CheckVectors(context, layer));
  layer->output = Shape({1});
  return absl::OkStatus();
}

absl::Status InferDotInteraction(const v1::LayerConfig& config, const LayerContext& context,
                                 LayerSpec* layer) {
  RETURN_IF_ERROR(CheckVectors(context, layer));
  layer->diagonal = config.dot_interaction().diagonal();
  const auto vectors = static_cast<int64_t>(layer->inputs.size());
  RETURN_IF_ERROR(
      CheckElements(context.path, "the inputs", Shape({vectors, layer->input.num_elements()})));
  layer->output = Shape({vectors * (layer->diagonal ? vectors + 1 : vectors - 1) / 2});
  return absl::OkStatus();
}

absl::Status InferCosine(const v1::LayerConfig& config, const LayerContext& context,
                         LayerSpec* layer) {
  layer->epsilon = config.cosine().has_epsilon() ? config.cosine().epsilon() : 1e-6f;
  RETURN_IF_ERROR(CheckPositiveNumber(absl::StrCat(context.path, ".epsilon"), layer->epsilon));
  return InferProduct(config, context, layer);
}

// A product and a sum for each feature.
int64_t DotOperations(const LayerSpec& layer) { return 2 * layer.input.num_elements(); }

// Three inner products.
int64_t CosineOperations(const LayerSpec& layer) { return 3 * DotOperations(layer); }

// The sum of the inputs, and an inner product of that and of each of them.
int64_t FactorizationMachineOperations(const LayerSpec& layer) {
  const auto inputs = static_cast<int64_t>(layer.inputs.size());
  return (inputs - 1) * layer.input.num_elements() + (inputs + 1) * DotOperations(layer);
}

// An inner product for each pair.
int64_t DotInteractionOperations(const LayerSpec& layer) {
  return layer.output.num_elements() * DotOperations(layer);
}

}  // namespace

LayerRules DotRules() { return {.inputs = 2, .infer = InferProduct, .operations = DotOperations}; }

LayerRules CosineRules() {
  return {.inputs = 2, .infer = InferCosine, .operations = CosineOperations};
}

LayerRules FactorizationMachineRules() {
  return {.inputs = 2,
          .more_inputs = true,
          .infer = InferProduct,
          .operations = FactorizationMachineOperations};
}

LayerRules DotInteractionRules() {
  return {.inputs = 2,
          .more_inputs = true,
          .infer = InferDotInteraction,
          .operations = DotInteractionOperations};
}

}  // namespace keelson
