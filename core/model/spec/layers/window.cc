#include "core/model/spec/layers/window.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"

namespace keelson {
namespace {

// Output extent and padding at the start of one axis.
struct Axis {
  int64_t output;
  int64_t pad;
};

absl::StatusOr<Axis> PadAxis(v1::Padding padding, const std::string& path, int64_t input,
                             int64_t window, int64_t stride) {
  if (padding == v1::SAME) {
    const int64_t output = (input + stride - 1) / stride;
    return Axis{output, std::max<int64_t>((output - 1) * stride + window - input, 0) / 2};
  }
  if (padding != v1::VALID && padding != v1::PADDING_UNSPECIFIED) {
    return FieldError(absl::StrCat(path, ".padding"),
                      absl::StrCat("expected VALID or SAME, found ", static_cast<int>(padding)));
  }
  if (window > input) {
    return FieldError(path, absl::StrCat("a window of ", window, " does not fit the input's ",
                                         input, " rows or columns; use padding: SAME"));
  }
  return Axis{(input - window) / stride + 1, 0};
}

}  // namespace

absl::Status InferWindow(v1::Padding padding, const std::string& path, int64_t channels,
                         LayerSpec* layer) {
  if (layer->input.rank() != 3) {
    return FieldError(path, absl::StrCat("expected an input [height, width, channels], found ",
                                         layer->input.ToString()));
  }
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".stride"), layer->stride));
  if (std::max(layer->window, layer->stride) > kMaxElements) {
    return FieldError(path, absl::StrCat("expected a window and a stride of at most ", kMaxElements,
                                         ", found ", std::max(layer->window, layer->stride)));
  }
  ASSIGN_OR_RETURN(const Axis rows,
                   PadAxis(padding, path, layer->input.dim(0), layer->window, layer->stride));
  ASSIGN_OR_RETURN(const Axis cols,
                   PadAxis(padding, path, layer->input.dim(1), layer->window, layer->stride));
  layer->pad_top = rows.pad;
  layer->pad_left = cols.pad;
  layer->output = Shape({rows.output, cols.output, channels});
  return absl::OkStatus();
}

}  // namespace keelson
