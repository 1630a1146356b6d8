// batch_norm and layer_norm.
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"

namespace keelson {
namespace {

constexpr Initializer kZeros = {Initializer::Kind::kConstant, 0, 0};
constexpr Initializer kOnes = {Initializer::Kind::kConstant, 1, 0};

absl::Status InferBatchNorm(const v1::LayerConfig& config, const LayerContext& context,
                            LayerSpec* layer) {
  const v1::BatchNorm& norm = config.batch_norm();
  const float momentum = norm.has_momentum() ? norm.momentum() : 0.99f;
  const float epsilon = norm.has_epsilon() ? norm.epsilon() : 1e-3f;
  // Written so that not-a-number fails too.
  if (!(momentum >= 0 && momentum < 1)) {
    return FieldError(absl::StrCat(context.path, ".momentum"),
                      absl::StrCat("expected >= 0 and < 1, found ", momentum));
  }
  RETURN_IF_ERROR(CheckPositiveNumber(absl::StrCat(context.path, ".epsilon"), epsilon));
  layer->epsilon = epsilon;
  const Shape channels({layer->input.dims().back()});
  if (!norm.no_scale()) layer->gamma = context.AddVariable(*layer, "gamma", channels, kOnes);
  if (!norm.no_center()) layer->beta = context.AddVariable(*layer, "beta", channels, kZeros);
  layer->moving_mean = context.AddVariable(*layer, "moving_mean", channels, kZeros, momentum);
  layer->moving_variance =
      context.AddVariable(*layer, "moving_variance", channels, kOnes, momentum);
  layer->output = layer->input;
  return absl::OkStatus();
}

absl::Status InferLayerNorm(const v1::LayerConfig& config, const LayerContext& context,
                            LayerSpec* layer) {
  const v1::LayerNorm& norm = config.layer_norm();
  const float epsilon = norm.has_epsilon() ? norm.epsilon() : 1e-5f;
  RETURN_IF_ERROR(CheckPositiveNumber(absl::StrCat(context.path, ".epsilon"), epsilon));
  layer->epsilon = epsilon;
  const Shape features({layer->input.dims().back()});
  if (!norm.no_scale()) layer->gamma = context.AddVariable(*layer, "gamma", features, kOnes);
  if (!norm.no_center()) layer->beta = context.AddVariable(*layer, "beta", features, kZeros);
  layer->output = layer->input;
  return absl::OkStatus();
}

// Mean, variance, and x - mean times and plus one number each.
int64_t NormOperations(const LayerSpec& layer) { return 6 * layer.output.num_elements(); }

}  // namespace

LayerRules BatchNormRules() { return {.infer = InferBatchNorm, .operations = NormOperations}; }

LayerRules LayerNormRules() { return {.infer = InferLayerNorm, .operations = NormOperations}; }

}  // namespace keelson
