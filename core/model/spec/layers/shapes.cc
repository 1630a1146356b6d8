// flatten, reshape and transpose.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"

namespace keelson {
namespace {

absl::Status InferFlatten(const v1::LayerConfig& /*config*/, const LayerContext& /*context*/,
                          LayerSpec* layer) {
  layer->output = Shape({layer->input.num_elements()});
  return absl::OkStatus();
}

// The extents of the configuration, at most one of which is -1: its position, or their number.
absl::StatusOr<size_t> FindOpenExtent(const v1::Reshape& reshape, const LayerContext& context) {
  const auto rank = static_cast<size_t>(reshape.shape_size());
  if (rank < 1 || rank > 3) {
    return FieldError(absl::StrCat(context.path, ".shape"),
                      absl::StrCat("expected one to three extents, found ", rank));
  }
  size_t open = rank;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = reshape.shape(static_cast<int>(i));
    const bool left = extent == -1 && open == rank;
    if (left) open = i;
    if (left || extent > 0) continue;
    return FieldError(absl::StrCat(context.path, ".shape[", i, "]"),
                      absl::StrCat("expected > 0, or one -1, found ", extent));
  }
  return open;
}

absl::Status InferReshape(const v1::LayerConfig& config, const LayerContext& context,
                          LayerSpec* layer) {
  const v1::Reshape& reshape = config.reshape();
  ASSIGN_OR_RETURN(const size_t open, FindOpenExtent(reshape, context));
  std::vector<int64_t> dims(reshape.shape().begin(), reshape.shape().end());
  const int64_t elements = layer->input.num_elements();
  if (open < dims.size()) dims[open] = 1;
  const Shape known(dims);
  RETURN_IF_ERROR(CheckElements(context.path, "an output", known));
  const int64_t product = known.num_elements();
  if (open < dims.size() && elements % product == 0) dims[open] = elements / product;
  layer->output = Shape(std::move(dims));
  if (layer->output.num_elements() == elements) return absl::OkStatus();
  return FieldError(
      absl::StrCat(context.path, ".shape"),
      absl::StrCat("expected the ", elements, " elements of the input ", layer->input.ToString(),
                   ", found ", open < layer->output.rank() ? "a multiple of " : "", product));
}

absl::Status InferTranspose(const v1::LayerConfig& config, const LayerContext& context,
                            LayerSpec* layer) {
  const std::string path = absl::StrCat(context.path, ".axes");
  const auto& axes = config.transpose().axes();
  const size_t rank = layer->input.rank();
  if (static_cast<size_t>(axes.size()) != rank) {
    return FieldError(path, absl::StrCat("expected each axis of the input ",
                                         layer->input.ToString(), " once, found ", axes.size()));
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i];
    const bool repeated = std::find(axes.begin(), axes.begin() + i, axis) != axes.begin() + i;
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || repeated) {
      return FieldError(absl::StrCat(path, "[", i, "]"),
                        absl::StrCat("expected an axis from 0 to ", rank - 1,
                                     " that was not named "
                                     "before, found ",
                                     axis));
    }
    layer->axes.push_back(static_cast<size_t>(axis));
    dims.push_back(layer->input.dim(axis));
  }
  layer->output = Shape(std::move(dims));
  return absl::OkStatus();
}

}  // namespace

LayerRules FlattenRules() { return {.infer = InferFlatten}; }

LayerRules ReshapeRules() { return {.infer = InferReshape}; }

LayerRules TransposeRules() { return {.infer = InferTranspose}; }

}  // namespace keelson
