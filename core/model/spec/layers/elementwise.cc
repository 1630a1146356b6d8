// Activations, gates, softmax, dropout, scale, add and multiply.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"

namespace keelson {
namespace {

absl::Status InferOneShape(const v1::LayerConfig& /*config*/, const LayerContext& context,
                           LayerSpec* layer) {
  for (const Shape& input : layer->input_shapes) {
    if (input == layer->input) continue;
    return FieldError(context.path,
                      absl::StrCat("expected inputs of one shape, found ", layer->input.ToString(),
                                   " and ", input.ToString()));
  }
  layer->output = layer->input;
  return absl::OkStatus();
}

absl::Status InferScale(const v1::LayerConfig& config, const LayerContext& context,
                        LayerSpec* layer) {
  const v1::Scale& scale = config.scale();
  if (!scale.has_factor() || !std::isfinite(scale.factor())) {
    return FieldError(absl::StrCat(context.path, ".factor"),
                      absl::StrCat("expected a finite number, found ",
                                   scale.has_factor() ? absl::StrCat(scale.factor()) : "none"));
  }
  layer->scale_factor = scale.factor();
  layer->output = layer->input;
  return absl::OkStatus();
}

absl::Status InferDropout(const v1::LayerConfig& config, const LayerContext& context,
                          LayerSpec* layer) {
  const float rate = config.dropout().rate();
  // Written so that not-a-number fails too.
  if (!(rate >= 0 && rate < 1)) {
    return FieldError(absl::StrCat(context.path, ".rate"),
                      absl::StrCat("expected >= 0 and < 1, found ", rate));
  }
  layer->dropout_rate = rate;
  layer->output = layer->input;
  return absl::OkStatus();
}

absl::Status InferActivation(const v1::LayerConfig& /*config*/, const LayerContext& /*context*/,
                             LayerSpec* layer) {
  layer->output = layer->input;
  return absl::OkStatus();
}

int64_t OneForEach(const LayerSpec& layer) { return layer.output.num_elements(); }

// The share p(x), and its product with x.
int64_t GateOperations(const LayerSpec& layer) { return 2 * layer.output.num_elements(); }

// The largest, the exponential, the sum and the quotient.
int64_t SoftmaxOperations(const LayerSpec& layer) { return 4 * layer.output.num_elements(); }

int64_t OneForEachInputAfterTheFirst(const LayerSpec& layer) {
  return static_cast<int64_t>(layer.inputs.size() - 1) * layer.output.num_elements();
}

}  // namespace

LayerRules ActivationRules() { return {.infer = InferActivation, .operations = OneForEach}; }

LayerRules GateRules() { return {.infer = InferActivation, .operations = GateOperations}; }

LayerRules SoftmaxRules() { return {.infer = InferActivation, .operations = SoftmaxOperations}; }

LayerRules DropoutRules() { return {.infer = InferDropout, .operations = OneForEach}; }

LayerRules ScaleRules() { return {.infer = InferScale, .operations = OneForEach}; }

LayerRules AddRules() {
  return {.inputs = 2,
          .more_inputs = true,
          .infer = InferOneShape,
          .operations = OneForEachInputAfterTheFirst};
}

LayerRules MultiplyRules() {
  return {.inputs = 2, .infer = InferOneShape, .operations = OneForEachInputAfterTheFirst};
}

}  // namespace keelson
