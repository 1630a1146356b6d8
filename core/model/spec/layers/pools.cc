// max_pool and avg_pool.
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
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

int64_t PoolOperations(const LayerSpec& layer) {
  return layer.window * layer.window * layer.output.num_elements();
}

}  // namespace

LayerRules MaxPoolRules() { return {.infer = InferMaxPool, .operations = PoolOperations}; }

LayerRules AvgPoolRules() { return {.infer = InferAvgPool, .operations = PoolOperations}; }

}  // namespace keelson
