// concat and slice.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"

namespace keelson {
namespace {

absl::Status InferConcat(const v1::LayerConfig& /*config*/, const LayerContext& context,
                         LayerSpec* layer) {
  std::vector<int64_t> dims = layer->input.dims();
  int64_t last = 0;
  for (const Shape& input : layer->input_shapes) {
    std::vector<int64_t> others = input.dims();
    if (others.size() == dims.size()) others.back() = dims.back();
    if (others != dims) {
      return FieldError(context.path,
                        absl::StrCat("expected inputs whose shapes differ in the last extent "
                                     "only, found ",
                                     layer->input.ToString(), " and ", input.ToString()));
    }
    last += input.dims().back();
  }
  dims.back() = last;
  layer->output = Shape(std::move(dims));
  return absl::OkStatus();
}

absl::Status InferSlice(const v1::LayerConfig& config, const LayerContext& context,
                        LayerSpec* layer) {
  const v1::Slice& slice = config.slice();
  std::vector<int64_t> dims = layer->input.dims();
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(context.path, ".size"), slice.size()));
  if (slice.begin() < 0 || slice.begin() > dims.back() - slice.size()) {
    return FieldError(context.path, absl::StrCat("expected a part of the ", dims.back(),
                                                 " features or channels, found ", slice.size(),
                                                 " from ", slice.begin(), " on"));
  }
  layer->slice_begin = slice.begin();
  dims.back() = slice.size();
  layer->output = Shape(std::move(dims));
  return absl::OkStatus();
}

}  // namespace

LayerRules ConcatRules() { return {.inputs = 2, .more_inputs = true, .infer = InferConcat}; }

LayerRules SliceRules() { return {.infer = InferSlice}; }

}  // namespace keelson
