#include "core/model/spec/model_spec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

using LayerCase = v1::LayerConfig::KindCase;

constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

absl::Status Invalid(absl::string_view path, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", text));
}

absl::Status CheckPositive(absl::string_view path, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return Invalid(path, absl::StrCat("expected > 0, found ", value));
}

// The extents are positive.
absl::Status CheckElements(absl::string_view path, absl::string_view what, const Shape& shape) {
  int64_t elements = 1;
  for (int64_t dim : shape.dims()) {
    if (dim <= kMaxElements / elements) {
      elements *= dim;
      continue;
    }
    return Invalid(path, absl::StrCat("expected ", what, " of at most ", kMaxElements,
                                      " elements, found ", shape.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<LayerKind> ToLayerKind(LayerCase kind, const std::string& path) {
  switch (kind) {
    case LayerCase::kDense:
      return LayerKind::kDense;
    case LayerCase::kConv2D:
      return LayerKind::kConv2D;
    case LayerCase::kMaxPool:
      return LayerKind::kMaxPool;
    case LayerCase::kAvgPool:
      return LayerKind::kAvgPool;
    case LayerCase::kFlatten:
      return LayerKind::kFlatten;
    case LayerCase::kRelu:
      return LayerKind::kRelu;
    case LayerCase::kTanh:
      return LayerKind::kTanh;
    case LayerCase::kSigmoid:
      return LayerKind::kSigmoid;
    case LayerCase::kDropout:
      return LayerKind::kDropout;
    case LayerCase::kBatchNorm:
      return LayerKind::kBatchNorm;
    case LayerCase::KIND_NOT_SET:
      break;
  }
  return Invalid(path, "expected a kind of layer (dense, conv2d, max_pool, ...), found none");
}

// TensorFlow's rule for scopes, without the slash, which separates the layer from the variable.
bool IsLayerName(const std::string& name) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || c == '.'; };
  return !name.empty() && allowed(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return allowed(c) || c == '_' || c == '-';
  });
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
      return Invalid(absl::StrCat(path, ".kernel_initializer"),
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
    return Invalid(absl::StrCat(path, ".padding"),
                   absl::StrCat("expected VALID or SAME, found ", static_cast<int>(padding)));
  }
  if (window > input) {
    return Invalid(path, absl::StrCat("a window of ", window, " does not fit the input's ", input,
                                      " rows or columns; use padding: SAME"));
  }
  return Axis{(input - window) / stride + 1, 0};
}

// Reads the layers one after the other; each takes the output of the one before.
class SpecBuilder {
 public:
  absl::StatusOr<ModelSpec> Build(const v1::ModelConfig& config) {
    spec_.name = config.name();
    RETURN_IF_ERROR(SetInput(config));
    if (config.layers().empty()) {
      return Invalid("model.layers", "expected at least one, found none");
    }
    for (int i = 0; i < config.layers_size(); ++i) {
      RETURN_IF_ERROR(AddLayer(config.layers(i), absl::StrCat("model.layers[", i, "]")));
    }
    if (std::none_of(spec_.variables.begin(), spec_.variables.end(),
                     [](const VariableSpec& variable) { return variable.trained(); })) {
      return Invalid("model.layers",
                     "expected a layer to train (dense, conv2d or batch_norm), found none");
    }
    RETURN_IF_ERROR(SetLoss(config.loss()));
    return std::move(spec_);
  }

 private:
  absl::Status SetInput(const v1::ModelConfig& config) {
    const int rank = config.input_shape_size();
    if (rank != 1 && rank != 3) {
      return Invalid("model.input_shape",
                     absl::StrCat("expected [features] or [height, width, channels], found ", rank,
                                  " extents"));
    }
    for (int i = 0; i < rank; ++i) {
      RETURN_IF_ERROR(
          CheckPositive(absl::StrCat("model.input_shape[", i, "]"), config.input_shape(i)));
    }
    spec_.input =
        Shape(std::vector<int64_t>(config.input_shape().begin(), config.input_shape().end()));
    return CheckElements("model.input_shape", "an example", spec_.input);
  }

  absl::Status AddLayer(const v1::LayerConfig& config, const std::string& path) {
    LayerSpec layer;
    ASSIGN_OR_RETURN(layer.kind, ToLayerKind(config.kind_case(), path));
    RETURN_IF_ERROR(NameLayer(config, path, &layer));
    layer.input = spec_.layers.empty() ? spec_.input : spec_.layers.back().output;
    const std::string kind_path = absl::StrCat(path, ".", LayerKindName(layer.kind));
    RETURN_IF_ERROR(InferLayer(config, kind_path, &layer));
    RETURN_IF_ERROR(CheckElements(kind_path, "an output", layer.output));
    spec_.layers.push_back(std::move(layer));
    return absl::OkStatus();
  }

  absl::Status NameLayer(const v1::LayerConfig& config, const std::string& path, LayerSpec* layer) {
    const int number = ++count_[layer->kind];
    layer->name = config.name().empty() ? absl::StrCat(LayerKindName(layer->kind), "_", number)
                                        : config.name();
    const std::string name_path = absl::StrCat(path, ".name");
    if (!IsLayerName(layer->name)) {
      return Invalid(name_path,
                     absl::StrCat("expected letters, digits, '.', '_' or '-', the first of them a "
                                  "letter, a digit or '.', found \"",
                                  layer->name, "\""));
    }
    if (!names_.insert(layer->name).second) {
      return Invalid(name_path,
                     absl::StrCat("another layer is already called \"", layer->name, "\""));
    }
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
    }
    return absl::OkStatus();
  }

  absl::Status InferDense(const v1::Dense& config, const std::string& path, LayerSpec* layer) {
    if (layer->input.rank() != 1) {
      return Invalid(path, absl::StrCat("expected an input [features], found ",
                                        layer->input.ToString(), "; a flatten layer is missing"));
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
      return Invalid(path, absl::StrCat("expected an input [height, width, channels], found ",
                                        layer->input.ToString()));
    }
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".stride"), layer->stride));
    if (std::max(layer->window, layer->stride) > kMaxElements) {
      return Invalid(path, absl::StrCat("expected a window and a stride of at most ", kMaxElements,
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

  absl::Status InferDropout(const v1::Dropout& config, const std::string& path, LayerSpec* layer) {
    // Written so that not-a-number fails too.
    if (!(config.rate() >= 0 && config.rate() < 1)) {
      return Invalid(absl::StrCat(path, ".rate"),
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
      return Invalid(absl::StrCat(path, ".momentum"),
                     absl::StrCat("expected >= 0 and < 1, found ", momentum));
    }
    if (!(epsilon > 0 && std::isfinite(epsilon))) {
      return Invalid(absl::StrCat(path, ".epsilon"), absl::StrCat("expected > 0, found ", epsilon));
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
    const int64_t outputs = kernel.dims().back();
    layer->kernel = AddVariable(*layer, "kernel", std::move(kernel), initializer);
    if (with_bias) layer->bias = AddVariable(*layer, "bias", Shape({outputs}), {});
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
        return Invalid("model.loss.kind",
                       "expected SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY or "
                       "MEAN_SQUARED_ERROR, found none");
    }
    const Shape& output = spec_.layers.back().output;
    spec_.output_size = output.num_elements();
    const bool softmax = spec_.loss == LossKind::kSoftmaxCrossEntropy;
    if (output.rank() == 1 && (softmax ? spec_.output_size >= 2 : spec_.output_size == 1)) {
      return absl::OkStatus();
    }
    return Invalid(
        "model.loss",
        absl::StrCat(LossKindName(spec_.loss), " takes ", softmax ? "[classes], 2 or more" : "[1]",
                     ", found a last layer with the output ", output.ToString()));
  }

  ModelSpec spec_;
  std::map<LayerKind, int> count_;
  std::set<std::string> names_;
};

}  // namespace

const char* LayerKindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kDense:
      return "dense";
    case LayerKind::kConv2D:
      return "conv2d";
    case LayerKind::kMaxPool:
      return "max_pool";
    case LayerKind::kAvgPool:
      return "avg_pool";
    case LayerKind::kFlatten:
      return "flatten";
    case LayerKind::kRelu:
      return "relu";
    case LayerKind::kTanh:
      return "tanh";
    case LayerKind::kSigmoid:
      return "sigmoid";
    case LayerKind::kDropout:
      return "dropout";
    case LayerKind::kBatchNorm:
      return "batch_norm";
  }
  return "";
}

std::vector<size_t> LayerSpec::variables() const {
  std::vector<size_t> positions;
  for (const std::optional<size_t>& position :
       {kernel, bias, gamma, beta, moving_mean, moving_variance}) {
    if (position) positions.push_back(*position);
  }
  return positions;
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
