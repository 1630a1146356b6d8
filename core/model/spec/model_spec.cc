#include "core/model/spec/model_spec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_error.h"

namespace keelson {
namespace {

constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

absl::Status CheckPositive(absl::string_view path, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return FieldError(path, absl::StrCat("expected > 0, found ", value));
}

// The extents are positive.
absl::Status CheckElements(absl::string_view path, absl::string_view what, const Shape& shape) {
  int64_t elements = 1;
  for (int64_t dim : shape.dims()) {
    if (dim <= kMaxElements / elements) {
      elements *= dim;
      continue;
    }
    return FieldError(path, absl::StrCat("expected ", what, " of at most ", kMaxElements,
                                         " elements, found ", shape.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Initializer> KernelInitializer(v1::KernelInitializer kind, const std::string& path,
                                              int64_t fan_in, int64_t fan_out) {
  switch (kind) {
    case v1::KERNEL_INITIALIZER_UNSPECIFIED:
    case v1::GLOROT_UNIFORM: {
      // Added as doubles: neither number has been compared with any limit yet.
      const double fans = static_cast<double>(fan_in) + static_cast<double>(fan_out);
      const auto limit = static_cast<float>(std::sqrt(6.0 / fans));
      return Initializer{Initializer::Kind::kUniform, -limit, limit};
    }
    case v1::HE_NORMAL:
      return Initializer{Initializer::Kind::kNormal, 0,
                         static_cast<float>(std::sqrt(2.0 / static_cast<double>(fan_in)))};
    case v1::ZEROS:
      return Initializer{Initializer::Kind::kConstant, 0, 0};
    default:
      return FieldError(absl::StrCat(path, ".kernel_initializer"),
                        absl::StrCat("expected GLOROT_UNIFORM, HE_NORMAL or ZEROS, found ",
                                     static_cast<int>(kind)));
  }
}

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

// Reads the layers one after the other, each after those whose outputs it takes.
class SpecBuilder {
 public:
  absl::StatusOr<ModelSpec> Build(const v1::ModelConfig& config) {
    spec_.name = config.name();
    RETURN_IF_ERROR(SetInput(config));
    ASSIGN_OR_RETURN(const std::vector<LayerNode> nodes, OrderLayers(config));
    for (const LayerNode& node : nodes) {
      RETURN_IF_ERROR(AddLayer(config.layers(node.position), node));
    }
    if (std::none_of(spec_.variables.begin(), spec_.variables.end(),
                     [](const VariableSpec& variable) { return variable.trained(); })) {
      return FieldError("model.layers",
                        "expected a layer to train (dense, conv2d or batch_norm), found none");
    }
    RETURN_IF_ERROR(SetLoss(config.loss()));
    return std::move(spec_);
  }

 private:
  absl::Status SetInput(const v1::ModelConfig& config) {
    const int rank = config.input_shape_size();
    if (rank != 1 && rank != 3) {
      return FieldError("model.input_shape",
                        absl::StrCat("expected [features] or [height, width, channels], found ",
                                     rank, " extents"));
    }
    for (int i = 0; i < rank; ++i) {
      RETURN_IF_ERROR(
          CheckPositive(absl::StrCat("model.input_shape[", i, "]"), config.input_shape(i)));
    }
    spec_.input =
        Shape(std::vector<int64_t>(config.input_shape().begin(), config.input_shape().end()));
    return CheckElements("model.input_shape", "an example", spec_.input);
  }

  absl::Status AddLayer(const v1::LayerConfig& config, const LayerNode& node) {
    LayerSpec layer;
    layer.kind = node.kind;
    layer.name = node.name;
    layer.inputs = node.inputs;
    for (const ValueId input : node.inputs) layer.input_shapes.push_back(spec_.ShapeOf(input));
    layer.input = layer.input_shapes.front();
    const std::string path = absl::StrCat("model.layers[", node.position, "]");
    const std::string kind_path = absl::StrCat(path, ".", LayerKindName(layer.kind));
    RETURN_IF_ERROR(CheckInputs(path, layer));
    RETURN_IF_ERROR(FindOwner(config, path, layer));
    RETURN_IF_ERROR(InferLayer(config, kind_path, &layer));
    RETURN_IF_ERROR(CheckElements(kind_path, "an output", layer.output));
    spec_.layers.push_back(std::move(layer));
    return absl::OkStatus();
  }

  absl::Status CheckInputs(const std::string& path, const LayerSpec& layer) const {
    const bool many = layer.kind == LayerKind::kAdd || layer.kind == LayerKind::kConcat;
    const size_t expected = many || layer.kind == LayerKind::kMultiply ? 2 : 1;
    const size_t found = layer.inputs.size();
    if (many ? found >= expected : found == expected) return absl::OkStatus();
    return FieldError(absl::StrCat(path, ".inputs"),
                      absl::StrCat("expected ", expected, many ? " or more" : "", " of ",
                                   LayerKindName(layer.kind), ", found ", found));
  }

  // Finds the layer whose variables this one shares, if it shares any.
  absl::Status FindOwner(const v1::LayerConfig& config, const std::string& layer_path,
                         const LayerSpec& layer) {
    owner_ = nullptr;
    const std::string& name = config.variables_of();
    if (name.empty()) return absl::OkStatus();
    const std::string path = absl::StrCat(layer_path, ".variables_of");
    if (layer.kind != LayerKind::kDense && layer.kind != LayerKind::kConv2D) {
      return FieldError(path,
                        absl::StrCat("expected dense or conv2d, which can share variables, found ",
                                     LayerKindName(layer.kind)));
    }
    if (config.dense().kernel_initializer() != v1::KERNEL_INITIALIZER_UNSPECIFIED ||
        config.conv2d().kernel_initializer() != v1::KERNEL_INITIALIZER_UNSPECIFIED) {
      return FieldError(path, "expected no kernel_initializer beside it, found one");
    }
    const auto owner = std::find_if(
        spec_.layers.begin(), spec_.layers.end(),
        [&](const LayerSpec& other) { return other.name == name && other.kind == layer.kind; });
    if (owner == spec_.layers.end()) {
      return FieldError(
          path, absl::StrCat("expected the name of a ", LayerKindName(layer.kind),
                             " layer that is computed before this one, found \"", name, "\""));
    }
    owner_ = &*owner;
    return absl::OkStatus();
  }

  absl::Status InferLayer(const v1::LayerConfig& config, const std::string& path,
                          LayerSpec* layer) {
    switch (layer->kind) {
      case LayerKind::kDense:
        return InferDense(config.dense(), path, layer);
      case LayerKind::kConv2D:
        return InferConv2D(config.conv2d(), path, layer);
      case LayerKind::kMaxPool:
        return InferPool(config.max_pool(), path, layer);
      case LayerKind::kAvgPool:
        return InferPool(config.avg_pool(), path, layer);
      case LayerKind::kFlatten:
        layer->output = Shape({layer->input.num_elements()});
        return absl::OkStatus();
      case LayerKind::kDropout:
        return InferDropout(config.dropout(), path, layer);
      case LayerKind::kBatchNorm:
        return InferBatchNorm(config.batch_norm(), path, layer);
      case LayerKind::kRelu:
      case LayerKind::kTanh:
      case LayerKind::kSigmoid:
        layer->output = layer->input;
        return absl::OkStatus();
      case LayerKind::kAdd:
      case LayerKind::kMultiply:
        return InferElementwise(path, layer);
      case LayerKind::kConcat:
        return InferConcat(path, layer);
      case LayerKind::kSlice:
        return InferSlice(config.slice(), path, layer);
      case LayerKind::kScale:
        return InferScale(config.scale(), path, layer);
    }
    return absl::OkStatus();
  }

  absl::Status InferElementwise(const std::string& path, LayerSpec* layer) {
    for (const Shape& input : layer->input_shapes) {
      if (input == layer->input) continue;
      return FieldError(path, absl::StrCat("expected inputs of one shape, found ",
                                           layer->input.ToString(), " and ", input.ToString()));
    }
    layer->output = layer->input;
    return absl::OkStatus();
  }

  absl::Status InferConcat(const std::string& path, LayerSpec* layer) {
    std::vector<int64_t> dims = layer->input.dims();
    int64_t last = 0;
    for (const Shape& input : layer->input_shapes) {
      std::vector<int64_t> others = input.dims();
      if (others.size() == dims.size()) others.back() = dims.back();
      if (others != dims) {
        return FieldError(path,
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

  absl::Status InferSlice(const v1::Slice& config, const std::string& path, LayerSpec* layer) {
    std::vector<int64_t> dims = layer->input.dims();
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".size"), config.size()));
    if (config.begin() < 0 || config.begin() > dims.back() - config.size()) {
      return FieldError(path, absl::StrCat("expected a part of the ", dims.back(),
                                           " features or channels, found ", config.size(), " from ",
                                           config.begin(), " on"));
    }
    layer->slice_begin = config.begin();
    dims.back() = config.size();
    layer->output = Shape(std::move(dims));
    return absl::OkStatus();
  }

  absl::Status InferScale(const v1::Scale& config, const std::string& path, LayerSpec* layer) {
    if (!config.has_factor() || !std::isfinite(config.factor())) {
      return FieldError(absl::StrCat(path, ".factor"),
                        absl::StrCat("expected a finite number, found ",
                                     config.has_factor() ? absl::StrCat(config.factor()) : "none"));
    }
    layer->scale_factor = config.factor();
    layer->output = layer->input;
    return absl::OkStatus();
  }

  absl::Status InferDense(const v1::Dense& config, const std::string& path, LayerSpec* layer) {
    if (layer->input.rank() != 1) {
      return FieldError(
          path, absl::StrCat("expected an input [features], found ", layer->input.ToString(),
                             "; a flatten layer is missing"));
    }
    const int64_t inputs = layer->input.dim(0);
    const int64_t units = config.units();
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".units"), units));
    ASSIGN_OR_RETURN(const Initializer initializer,
                     KernelInitializer(config.kernel_initializer(), path, inputs, units));
    layer->output = Shape({units});
    return AddKernel(path, Shape({inputs, units}), initializer, !config.no_bias(), layer);
  }

  absl::Status InferConv2D(const v1::Conv2D& config, const std::string& path, LayerSpec* layer) {
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".filters"), config.filters()));
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".kernel_size"), config.kernel_size()));
    layer->window = config.kernel_size();
    layer->stride = config.stride() == 0 ? 1 : config.stride();
    RETURN_IF_ERROR(InferWindow(config.padding(), path, config.filters(), layer));
    const Shape kernel({layer->window, layer->window, layer->input.dim(2), config.filters()});
    RETURN_IF_ERROR(CheckElements(path, "a kernel", kernel));
    const int64_t area = layer->window * layer->window;
    ASSIGN_OR_RETURN(const Initializer initializer,
                     KernelInitializer(config.kernel_initializer(), path, area * kernel.dim(2),
                                       area * kernel.dim(3)));
    return AddKernel(path, kernel, initializer, !config.no_bias(), layer);
  }

  absl::Status InferPool(const v1::Pool& config, const std::string& path, LayerSpec* layer) {
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".size"), config.size()));
    layer->window = config.size();
    layer->stride = config.stride() == 0 ? config.size() : config.stride();
    const int64_t channels = layer->input.rank() == 3 ? layer->input.dim(2) : 0;
    return InferWindow(config.padding(), path, channels, layer);
  }

  // Sets the window, its padding and the output, of `channels`.
  absl::Status InferWindow(v1::Padding padding, const std::string& path, int64_t channels,
                           LayerSpec* layer) {
    if (layer->input.rank() != 3) {
      return FieldError(path, absl::StrCat("expected an input [height, width, channels], found ",
                                           layer->input.ToString()));
    }
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".stride"), layer->stride));
    if (std::max(layer->window, layer->stride) > kMaxElements) {
      return FieldError(
          path, absl::StrCat("expected a window and a stride of at most ", kMaxElements, ", found ",
                             std::max(layer->window, layer->stride)));
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

  absl::Status InferDropout(const v1::Dropout& config, const std::string& path, LayerSpec* layer) {
    // Written so that not-a-number fails too.
    if (!(config.rate() >= 0 && config.rate() < 1)) {
      return FieldError(absl::StrCat(path, ".rate"),
                        absl::StrCat("expected >= 0 and < 1, found ", config.rate()));
    }
    layer->dropout_rate = config.rate();
    layer->output = layer->input;
    return absl::OkStatus();
  }

  absl::Status InferBatchNorm(const v1::BatchNorm& config, const std::string& path,
                              LayerSpec* layer) {
    const float momentum = config.has_momentum() ? config.momentum() : 0.99f;
    const float epsilon = config.has_epsilon() ? config.epsilon() : 1e-3f;
    // Written so that not-a-number fails too.
    if (!(momentum >= 0 && momentum < 1)) {
      return FieldError(absl::StrCat(path, ".momentum"),
                        absl::StrCat("expected >= 0 and < 1, found ", momentum));
    }
    if (!(epsilon > 0 && std::isfinite(epsilon))) {
      return FieldError(absl::StrCat(path, ".epsilon"),
                        absl::StrCat("expected > 0, found ", epsilon));
    }
    constexpr Initializer kZeros = {Initializer::Kind::kConstant, 0, 0};
    constexpr Initializer kOnes = {Initializer::Kind::kConstant, 1, 0};
    const Shape channels({layer->input.dims().back()});
    if (!config.no_scale()) layer->gamma = AddVariable(*layer, "gamma", channels, kOnes);
    if (!config.no_center()) layer->beta = AddVariable(*layer, "beta", channels, kZeros);
    layer->moving_mean = AddVariable(*layer, "moving_mean", channels, kZeros, momentum);
    layer->moving_variance = AddVariable(*layer, "moving_variance", channels, kOnes, momentum);
    layer->batch_norm_epsilon = epsilon;
    layer->output = layer->input;
    return absl::OkStatus();
  }

  absl::Status AddKernel(const std::string& path, Shape kernel, Initializer initializer,
                         bool with_bias, LayerSpec* layer) {
    RETURN_IF_ERROR(CheckElements(path, "a kernel", kernel));
    if (owner_ != nullptr) return ShareKernel(path, kernel, with_bias, layer);
    const int64_t outputs = kernel.dims().back();
    layer->kernel = AddVariable(*layer, "kernel", std::move(kernel), initializer);
    if (with_bias) layer->bias = AddVariable(*layer, "bias", Shape({outputs}), {});
    return absl::OkStatus();
  }

  absl::Status ShareKernel(const std::string& path, const Shape& kernel, bool with_bias,
                           LayerSpec* layer) const {
    const Shape& shared = spec_.variables[*owner_->kernel].shape;
    if (kernel != shared) {
      return FieldError(path, absl::StrCat("expected a kernel ", shared.ToString(), ", that of \"",
                                           owner_->name, "\", found ", kernel.ToString()));
    }
    if (with_bias != owner_->bias.has_value()) {
      return FieldError(absl::StrCat(path, ".no_bias"),
                        absl::StrCat("expected what \"", owner_->name, "\" has, found ",
                                     with_bias ? "false" : "true"));
    }
    layer->kernel = owner_->kernel;
    layer->bias = owner_->bias;
    return absl::OkStatus();
  }

  // "<layer>/<name>". Returns its position.
  size_t AddVariable(const LayerSpec& layer, absl::string_view name, Shape shape,
                     Initializer initializer, std::optional<float> average_decay = std::nullopt) {
    const size_t position = spec_.variables.size();
    spec_.variables.push_back(
        {absl::StrCat(layer.name, "/", name), std::move(shape), initializer, average_decay});
    return position;
  }

  absl::Status SetLoss(const v1::LossConfig& config) {
    switch (config.kind()) {
      case v1::LossConfig::SOFTMAX_CROSS_ENTROPY:
        spec_.loss = LossKind::kSoftmaxCrossEntropy;
        break;
      case v1::LossConfig::SIGMOID_CROSS_ENTROPY:
        spec_.loss = LossKind::kSigmoidCrossEntropy;
        break;
      case v1::LossConfig::MEAN_SQUARED_ERROR:
        spec_.loss = LossKind::kMeanSquaredError;
        break;
      default:
        return FieldError("model.loss.kind",
                          "expected SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY or "
                          "MEAN_SQUARED_ERROR, found none");
    }
    const Shape& output = spec_.layers.back().output;
    spec_.output_size = output.num_elements();
    const bool softmax = spec_.loss == LossKind::kSoftmaxCrossEntropy;
    if (output.rank() == 1 && (softmax ? spec_.output_size >= 2 : spec_.output_size == 1)) {
      return absl::OkStatus();
    }
    return FieldError(
        "model.loss",
        absl::StrCat(LossKindName(spec_.loss), " takes ", softmax ? "[classes], 2 or more" : "[1]",
                     ", found a last layer with the output ", output.ToString()));
  }

  ModelSpec spec_;
  // Whose variables the layer that is read now shares; null: it has its own. In spec_.
  const LayerSpec* owner_ = nullptr;
};

}  // namespace

std::vector<size_t> LayerSpec::variables() const {
  std::vector<size_t> positions;
  for (const std::optional<size_t>& position :
       {kernel, bias, gamma, beta, moving_mean, moving_variance}) {
    if (position) positions.push_back(*position);
  }
  return positions;
}

int64_t LayerSpec::operations() const {
  const int64_t elements = output.num_elements();
  const int64_t of_bias = bias ? elements : 0;
  switch (kind) {
    case LayerKind::kDense:
      return 2 * input.num_elements() * elements + of_bias;
    case LayerKind::kConv2D:
      return 2 * window * window * input.dims().back() * elements + of_bias;
    case LayerKind::kMaxPool:
    case LayerKind::kAvgPool:
      return window * window * elements;
    // Mean, variance, and x - mean times and plus one number each.
    case LayerKind::kBatchNorm:
      return 6 * elements;
    case LayerKind::kAdd:
    case LayerKind::kMultiply:
      return static_cast<int64_t>(inputs.size() - 1) * elements;
    case LayerKind::kRelu:
    case LayerKind::kTanh:
    case LayerKind::kSigmoid:
    case LayerKind::kDropout:
    case LayerKind::kScale:
      return elements;
    case LayerKind::kFlatten:
    case LayerKind::kConcat:
    case LayerKind::kSlice:
      return 0;
  }
  return 0;
}

int64_t ModelSpec::parameters_of(const LayerSpec& layer) const {
  const auto owner = std::find_if(layers.begin(), layers.end(), [&](const LayerSpec& other) {
    return other.kernel.has_value() && other.kernel == layer.kernel;
  });
  if (owner != layers.end() && owner->name != layer.name) return 0;
  int64_t elements = 0;
  for (const size_t variable : layer.variables()) {
    elements += variables[variable].shape.num_elements();
  }
  return elements;
}

int64_t ModelSpec::num_classes() const {
  switch (loss) {
    case LossKind::kSoftmaxCrossEntropy:
      return output_size;
    case LossKind::kSigmoidCrossEntropy:
      return 2;
    case LossKind::kMeanSquaredError:
      return 0;
  }
  return 0;
}

const char* LossKindName(LossKind kind) {
  switch (kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return "SOFTMAX_CROSS_ENTROPY";
    case LossKind::kSigmoidCrossEntropy:
      return "SIGMOID_CROSS_ENTROPY";
    case LossKind::kMeanSquaredError:
      return "MEAN_SQUARED_ERROR";
  }
  return "";
}

absl::StatusOr<ModelSpec> InferModelSpec(const v1::ModelConfig& config) {
  return SpecBuilder().Build(config);
}

}  // namespace keelson
