// dense, conv2d and cross.
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"
#include "core/model/spec/layers/window.h"
#include "core/tensor/fans.h"

namespace keelson {
namespace {

absl::StatusOr<Initializer> KernelInitializer(v1::KernelInitializer kind, const std::string& path,
                                              const Fans& fans) {
  switch (kind) {
    case v1::KERNEL_INITIALIZER_UNSPECIFIED:
    case v1::GLOROT_UNIFORM:
      return GlorotUniform(fans);
    case v1::HE_NORMAL:
      return HeNormal(fans);
    case v1::ZEROS:
      return Initializer{Initializer::Kind::kConstant, 0, 0};
    default:
      return FieldError(absl::StrCat(path, ".kernel_initializer"),
                        absl::StrCat("expected GLOROT_UNIFORM, HE_NORMAL or ZEROS, found ",
                                     static_cast<int>(kind)));
  }
}

absl::Status ShareKernel(const LayerContext& context, const Shape& kernel, bool with_bias,
                         LayerSpec* layer) {
  const LayerSpec& owner = *context.owner;
  const std::string& path = context.path;
  const Shape& shared = (*context.variables)[*owner.kernel].shape;
  if (kernel != shared) {
    return FieldError(path, absl::StrCat("expected a kernel ", shared.ToString(), ", that of \"",
                                         owner.name, "\", found ", kernel.ToString()));
  }
  if (with_bias != owner.bias.has_value()) {
    return FieldError(absl::StrCat(path, ".no_bias"),
                      absl::StrCat("expected what \"", owner.name, "\" has, found ",
                                   with_bias ? "false" : "true"));
  }
  layer->kernel = owner.kernel;
  layer->bias = owner.bias;
  return absl::OkStatus();
}

absl::Status AddKernel(const LayerContext& context, Shape kernel, Initializer initializer,
                       bool with_bias, LayerSpec* layer) {
  RETURN_IF_ERROR(CheckElements(context.path, "a kernel", kernel));
  if (context.owner != nullptr) return ShareKernel(context, kernel, with_bias, layer);
  const int64_t outputs = kernel.dims().back();
  layer->kernel = context.AddVariable(*layer, "kernel", std::move(kernel), initializer);
  if (with_bias) layer->bias = context.AddVariable(*layer, "bias", Shape({outputs}), {});
  return absl::OkStatus();
}

absl::Status InferDense(const v1::LayerConfig& config, const LayerContext& context,
                        LayerSpec* layer) {
  const v1::Dense& dense = config.dense();
  const std::string& path = context.path;
  if (layer->input.rank() != 1) {
    return FieldError(path, absl::StrCat("expected an input [features], found ",
                                         layer->input.ToString(), "; a flatten layer is missing"));
  }
  const int64_t inputs = layer->input.dim(0);
  const int64_t units = dense.units();
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".units"), units));
  ASSIGN_OR_RETURN(const Initializer initializer,
                   KernelInitializer(dense.kernel_initializer(), path, {inputs, units}));
  layer->output = Shape({units});
  return AddKernel(context, Shape({inputs, units}), initializer, !dense.no_bias(), layer);
}

absl::Status InferConv2D(const v1::LayerConfig& config, const LayerContext& context,
                         LayerSpec* layer) {
  const v1::Conv2D& conv2d = config.conv2d();
  const std::string& path = context.path;
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".filters"), conv2d.filters()));
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".kernel_size"), conv2d.kernel_size()));
  layer->window = conv2d.kernel_size();
  layer->stride = conv2d.stride() == 0 ? 1 : conv2d.stride();
  RETURN_IF_ERROR(InferWindow(conv2d.padding(), path, conv2d.filters(), layer));
  const Shape kernel({layer->window, layer->window, layer->input.dim(2), conv2d.filters()});
  RETURN_IF_ERROR(CheckElements(path, "a kernel", kernel));
  ASSIGN_OR_RETURN(const Initializer initializer,
                   KernelInitializer(conv2d.kernel_initializer(), path, *FansOf(kernel)));
  return AddKernel(context, kernel, initializer, !conv2d.no_bias(), layer);
}

absl::Status InferCross(const v1::LayerConfig& config, const LayerContext& context,
                        LayerSpec* layer) {
  const v1::Cross& cross = config.cross();
  const std::string& path = context.path;
  const Shape& last = layer->input_shapes[1];
  if (layer->input.rank() != 1 || last != layer->input) {
    return FieldError(path, absl::StrCat("expected two inputs [features] of one shape, found ",
                                         layer->input.ToString(), " and ", last.ToString()));
  }
  const int64_t features = layer->input.dim(0);
  if (cross.rank() < 0 || cross.rank() > features) {
    return FieldError(absl::StrCat(path, ".rank"),
                      absl::StrCat("expected 0 to ", features, ", found ", cross.rank()));
  }
  layer->output = layer->input;
  layer->rank = cross.rank();
  const int64_t inputs = layer->rank > 0 ? layer->rank : features;
  const auto initializer = [&](int64_t from, int64_t to) {
    return KernelInitializer(cross.kernel_initializer(), path, {from, to});
  };
  if (layer->rank > 0) {
    const Shape down({features, inputs});
    RETURN_IF_ERROR(CheckElements(path, "a kernel", down));
    ASSIGN_OR_RETURN(const Initializer of_down, initializer(features, inputs));
    layer->down_kernel = context.AddVariable(*layer, "down_kernel", down, of_down);
  }
  ASSIGN_OR_RETURN(const Initializer of_kernel, initializer(inputs, features));
  return AddKernel(context, Shape({inputs, features}), of_kernel, !cross.no_bias(), layer);
}

int64_t OfBias(const LayerSpec& layer) { return layer.bias ? layer.output.num_elements() : 0; }

int64_t DenseOperations(const LayerSpec& layer) {
  return 2 * layer.input.num_elements() * layer.output.num_elements() + OfBias(layer);
}

int64_t Conv2DOperations(const LayerSpec& layer) {
  return 2 * layer.window * layer.window * layer.input.dims().back() * layer.output.num_elements() +
         OfBias(layer);
}

// The products, the bias, and the product with x0 and the sum with x.
int64_t CrossOperations(const LayerSpec& layer) {
  const int64_t features = layer.output.num_elements();
  const int64_t of_products =
      layer.down_kernel ? 4 * features * layer.rank : 2 * features * features;
  return of_products + OfBias(layer) + 2 * features;
}

}  // namespace

LayerRules DenseRules() {
  return {.shares_variables = true, .infer = InferDense, .operations = DenseOperations};
}

LayerRules CrossRules() {
  return {.inputs = 2, .infer = InferCross, .operations = CrossOperations};
}

LayerRules Conv2DRules() {
  return {.shares_variables = true, .infer = InferConv2D, .operations = Conv2DOperations};
}

}  // namespace keelson
