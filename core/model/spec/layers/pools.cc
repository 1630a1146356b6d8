// max_pool, avg_pool and global_average_pool.
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"
#include "core/model/spec/layers/window.h"

namespace keelson {
namespace {

absl::Status InferPool(const v1::Pool& config, const std::string& path, LayerSpec* layer) {
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".size"), config.size()));
  layer->window = config.size();
  layer->stride = config.stride() == 0 ? config.size() : config.stride();
  const int64_t channels = layer->input.rank() == 3 ? layer->input.dim(2) : 0;
  return InferWindow(config.padding(), path, channels, layer);
}

absl::Status InferMaxPool(const v1::LayerConfig& config, const LayerContext& context,
                          LayerSpec* layer) {
  return InferPool(config.max_pool(), context.path, layer);
}

absl::Status InferAvgPool(const v1::LayerConfig& config, const LayerContext& context,
                          LayerSpec* layer) {
  return InferPool(config.avg_pool(), context.path, layer);
}

absl::Status InferGlobalAveragePool(const v1::LayerConfig& /*config*/, const LayerContext& context,
                                    LayerSpec* layer) {
  if (layer->input.rank() < 2) {
    return FieldError(context.path, absl::StrCat("expected an input [height, width, channels] or "
                                                 "[positions, channels], found ",
                                                 layer->input.ToString()));
  }
  layer->output = Shape({layer->input.dims().back()});
  return absl::OkStatus();
}

int64_t GlobalAveragePoolOperations(const LayerSpec& layer) { return layer.input.num_elements(); }

int64_t PoolOperations(const LayerSpec& layer) {
  return layer.window * layer.window * layer.output.num_elements();
}

}  // namespace

LayerRules MaxPoolRules() { return {.infer = InferMaxPool, .operations = PoolOperations}; }

LayerRules AvgPoolRules() { return {.infer = InferAvgPool, .operations = PoolOperations}; }

LayerRules GlobalAveragePoolRules() {
  return {.infer = InferGlobalAveragePool, .operations = GlobalAveragePoolOperations};
}

}  // namespace keelson
