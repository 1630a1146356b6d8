// Forward and backward pass of every layer against double-precision loops, on every device and in
// every precision that it has. GPUs are the emulated one, or in another program that of the
// machine.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model_testing.h"
#include "gtest/gtest.h"
#include "testing/device/reference_operations.h"

namespace keelson {
namespace {

using reference::Doubles;
using reference::Floats;

Floats ToFloats(const Doubles& x) { return Floats(x.begin(), x.end()); }
Floats ToFloats(const Tensor& x) { return Floats(x.data(), x.data() + x.size()); }

ConvGeometry ConvOf(const LayerSpec& spec, int64_t batch) {
  return {batch,
          spec.input.dim(0),
          spec.input.dim(1),
          spec.input.dim(2),
          spec.output.dim(0),
          spec.output.dim(1),
          spec.output.dim(2),
          spec.window,
          spec.stride,
          spec.pad_top,
          spec.pad_left};
}

PoolGeometry PoolOf(const LayerSpec& spec, int64_t batch) {
  return {batch,
          spec.input.dim(0),
          spec.input.dim(1),
          spec.input.dim(2),
          spec.output.dim(0),
          spec.output.dim(1),
          spec.window,
          spec.stride,
          spec.pad_top,
          spec.pad_left};
}

BatchNormGeometry NormOf(const LayerSpec& spec, int64_t batch) {
  const int64_t channels = spec.output.dims().back();
  return {batch * spec.output.num_elements() / channels, channels, spec.epsilon};
}

// Layer by layer; what passes from one to the next is rounded to float.
class ReferenceModel {
 public:
  ReferenceModel(const ModelSpec& spec, const std::vector<Tensor>& values, int64_t batch,
                 uint64_t seed)
      : spec_(spec), batch_(batch), seed_(seed), gradients_(values.size()) {
    for (const Tensor& value : values) values_.push_back(ToFloats(value));
  }

  // The mean loss.
  double Compute(const Batch& batch) {
    inputs_.push_back(ToFloats(batch.features[0].numbers));
    for (size_t i = 0; i < spec_.layers.size(); ++i) {
      inputs_.push_back(ToFloats(Forward(spec_.layers[i], i)));
    }
    reference::Loss loss = ComputeLoss(ToFloats(batch.labels[0]));
    if (spec_.main_loss().weight_label) {
      WeighRecords(ToFloats(batch.labels[*spec_.main_loss().weight_label]), &loss);
    }
    Floats dy = ToFloats(loss.dscores);
    for (size_t i = spec_.layers.size(); i-- > 0;) dy = ToFloats(Backward(spec_.layers[i], i, dy));
    double sum = 0;
    for (const double l : loss.losses) sum += l;
    return sum / static_cast<double>(batch_);
  }

  const std::vector<Doubles>& gradients() const { return gradients_; }

 private:
  const Floats& Value(size_t variable) const { return values_[variable]; }
  Doubles& Gradient(size_t variable) { return gradients_[variable]; }
  Floats ValueOrNone(std::optional<size_t> variable) const {
    return variable ? Value(*variable) : Floats{};
  }

  Doubles AddBias(const LayerSpec& layer, Doubles y) const {
    if (!layer.bias) return y;
    const Floats& bias = Value(*layer.bias);
    for (size_t i = 0; i < y.size(); ++i) y[i] += double{bias[i % bias.size()]};
    return y;
  }

  MatMulArgs Product(const LayerSpec& layer) const {
    return {.m = batch_, .n = layer.output.num_elements(), .k = layer.input.num_elements()};
  }

  Doubles Forward(const LayerSpec& layer, size_t i) {
    const Floats& x = inputs_[i];
    switch (layer.kind) {
      case LayerKind::kDense:
        return AddBias(layer, reference::MatMul(Product(layer), x, Value(*layer.kernel), {}));
      case LayerKind::kConv2D:
        return AddBias(layer, reference::Conv2D(ConvOf(layer, batch_), x, Value(*layer.kernel)));
      case LayerKind::kMaxPool:
        return reference::MaxPool(PoolOf(layer, batch_), x);
      case LayerKind::kAvgPool:
        return reference::AvgPool(PoolOf(layer, batch_), x);
      case LayerKind::kDropout:
        return reference::Dropout(layer.dropout_rate, seed_, i, x);
      case LayerKind::kBatchNorm:
        return reference::BatchNorm(NormOf(layer, batch_), x, ValueOrNone(layer.gamma),
                                    ValueOrNone(layer.beta));
      default:
        break;
    }
    Doubles y(x.begin(), x.end());
    if (const auto kind = ActivationOf(layer.kind); kind.has_value()) {
      for (double& element : y) element = reference::Activate(*kind, element);
    }
    return y;
  }

  reference::Loss ComputeLoss(const Floats& labels) const {
    const double weight = 1.0 / static_cast<double>(batch_);
    switch (spec_.main_loss().kind) {
      case LossKind::kSoftmaxCrossEntropy:
        return reference::SoftmaxCrossEntropy(spec_.main_loss().outputs, weight, inputs_.back(),
                                              labels);
      case LossKind::kSigmoidCrossEntropy:
        return reference::SigmoidCrossEntropy(weight, inputs_.back(), labels);
      case LossKind::kHuber:
        return reference::HuberLoss(spec_.main_loss().delta, weight, inputs_.back(), labels);
      case LossKind::kMeanSquaredError:
      case LossKind::kInBatchSoftmax:  // of no model here
        break;
    }
    return reference::MeanSquaredError(weight, inputs_.back(), labels);
  }

  static void WeighRecords(const Floats& weights, reference::Loss* loss) {
    const size_t outputs = loss->dscores.size() / weights.size();
    for (size_t i = 0; i < weights.size(); ++i) loss->losses[i] *= double{weights[i]};
    for (size_t i = 0; i < loss->dscores.size(); ++i) {
      loss->dscores[i] *= double{weights[i / outputs]};
    }
  }

  Doubles Backward(const LayerSpec& layer, size_t i, const Floats& dy) {
    const Floats& x = inputs_[i];
    switch (layer.kind) {
      case LayerKind::kDense:
        return BackwardDense(layer, x, dy);
      case LayerKind::kConv2D:
        return BackwardConv2D(layer, x, dy);
      case LayerKind::kMaxPool:
        return reference::MaxPoolBackward(PoolOf(layer, batch_), x, dy);
      case LayerKind::kAvgPool:
        return reference::AvgPoolBackward(PoolOf(layer, batch_), dy);
      case LayerKind::kDropout:
        return reference::Dropout(layer.dropout_rate, seed_, i, dy);
      case LayerKind::kBatchNorm:
        return BackwardBatchNorm(layer, x, dy);
      default:
        break;
    }
    Doubles dx(dy.begin(), dy.end());
    if (const auto kind = ActivationOf(layer.kind); kind.has_value()) {
      for (size_t e = 0; e < dx.size(); ++e) {
        dx[e] *= reference::ActivateDerivative(*kind, double{x[e]});
      }
    }
    return dx;
  }

  Doubles BackwardDense(const LayerSpec& layer, const Floats& x, const Floats& dy) {
    const int64_t inputs = layer.input.num_elements();
    const int64_t units = layer.output.num_elements();
    Gradient(*layer.kernel) =
        reference::MatMul({.m = inputs, .n = units, .k = batch_, .transpose_a = true}, x, dy, {});
    if (layer.bias) Gradient(*layer.bias) = reference::ColumnSums(batch_, units, dy);
    return reference::MatMul({.m = batch_, .n = inputs, .k = units, .transpose_b = true}, dy,
                             Value(*layer.kernel), {});
  }

  Doubles BackwardConv2D(const LayerSpec& layer, const Floats& x, const Floats& dy) {
    const ConvGeometry geometry = ConvOf(layer, batch_);
    Gradient(*layer.kernel) = reference::Conv2DBackwardFilter(geometry, x, dy);
    if (layer.bias) {
      const int64_t channels = geometry.out_channels;
      Gradient(*layer.bias) = reference::ColumnSums(geometry.out_size() / channels, channels, dy);
    }
    return reference::Conv2DBackwardData(geometry, Value(*layer.kernel), dy);
  }

  Doubles BackwardBatchNorm(const LayerSpec& layer, const Floats& x, const Floats& dy) {
    const BatchNormGeometry geometry = NormOf(layer, batch_);
    const reference::Statistics samples = reference::BatchStatistics(geometry, x);
    Gradient(*layer.moving_mean) = samples.mean;
    Gradient(*layer.moving_variance) = samples.variance;
    const reference::BatchNormGradients gradients =
        reference::BatchNormBackward(geometry, x, ValueOrNone(layer.gamma), dy);
    if (layer.gamma) Gradient(*layer.gamma) = gradients.dgamma;
    if (layer.beta) Gradient(*layer.beta) = gradients.dbeta;
    return gradients.dx;
  }

  const ModelSpec& spec_;
  const int64_t batch_;
  const uint64_t seed_;
  std::vector<Floats> values_;
  std::vector<Floats> inputs_;  // of the layers, and the scores
  std::vector<Doubles> gradients_;
};

// |found - expected| / |expected|, Euclidean.
double RelativeError(const Tensor& found, const Doubles& expected) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double{found.data()[i]} - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / norm);
}

struct Network {
  const char* name;
  const char* text;
};

// The scores depend on all inputs smoothly, or the rounding of a device could change which of two
// nearly equal inputs is the maximum.
constexpr Network kNetworks[] = {
    {"dense",
     R"pb(input_shape: 37
          layers { dense { units: 29 } }
          layers { tanh {} }
          layers { dense { units: 33 no_bias: true } }
          layers { sigmoid {} }
          layers { dropout { rate: 0.3 } }
          layers { dense { units: 5 } }
          loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
    {"convolutions",
     R"pb(input_shape: [ 9, 8, 2 ]
          layers { conv2d { filters: 5 kernel_size: 3 padding: SAME } }
          layers { tanh {} }
          layers { avg_pool { size: 2 } }
          layers { conv2d { filters: 6 kernel_size: 2 stride: 2 no_bias: true } }
          layers { batch_norm {} }
          layers { sigmoid {} }
          layers { flatten {} }
          layers { dense { units: 4 } }
          loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
    {"sigmoid",
     R"pb(input_shape: 11
          layers { batch_norm { no_scale: true } }
          layers { dense { units: 9 } }
          layers { tanh {} }
          layers { dense { units: 1 } }
          loss { kind: SIGMOID_CROSS_ENTROPY })pb"},
    {"squared",
     R"pb(input_shape: 11
          layers { dense { units: 9 } }
          layers { tanh {} }
          layers { dense { units: 1 } }
          loss { kind: MEAN_SQUARED_ERROR })pb"},
    {"huber",
     R"pb(input_shape: 11
          layers { dense { units: 9 } }
          layers { tanh {} }
          layers { dense { units: 1 } }
          loss { kind: HUBER delta: 0.5 })pb"},
    {"weighted squared",
     R"pb(input_shape: 11
          layers { dense { units: 9 } }
          layers { tanh {} }
          layers { dense { units: 1 } }
          loss { kind: MEAN_SQUARED_ERROR weight_label: "trust" })pb"},
    {"weighted classes",
     R"pb(input_shape: 37
          layers { dense { units: 29 } }
          layers { tanh {} }
          layers { dense { units: 5 } }
          loss { kind: SOFTMAX_CROSS_ENTROPY weight_label: "trust" })pb"},
};
constexpr Network kMaxima = {"maxima",
                             R"pb(input_shape: [ 9, 8, 2 ]
                                  layers { conv2d { filters: 5 kernel_size: 3 } }
                                  layers { relu {} }
                                  layers { max_pool { size: 3 stride: 2 padding: SAME } }
                                  layers { flatten {} }
                                  layers { dense { units: 12 } }
                                  layers { relu {} }
                                  layers { dense { units: 4 } }
                                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"};

void ExpectNear(const Network& network, std::unique_ptr<Device> device, double tolerance) {
  constexpr int64_t kBatch = 19;
  TestModel test(network.text, 1, std::move(device));
  const Batch batch = RandomBatch(test.model->spec(), kBatch, 1);
  ReferenceModel reference(test.model->spec(), test.values, kBatch, 7);
  const double loss = reference.Compute(batch);
  // Directly, then repeated where the device repeats.
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(test.Step(batch, 7), loss, tolerance * loss) << network.name;
    for (size_t v = 0; v < test.gradients.size(); ++v) {
      EXPECT_LT(RelativeError(test.gradients[v], reference.gradients()[v]), tolerance)
          << network.name << ": " << test.model->variables()[v].name;
    }
  }
}

// Empty: there is a GPU.
std::string WhyNoGpu() {
  const absl::Status status = CreateDevice("cuda").status();
  return absl::IsFailedPrecondition(status) ? std::string(status.message()) : "";
}

std::unique_ptr<Device> NewGpu(Precision precision) {
  auto device = CreateDevice("cuda", {.precision = precision});
  EXPECT_TRUE(device.ok()) << device.status();
  return *std::move(device);
}

// By device.
class ModelReferenceTest : public testing::TestWithParam<const char*> {};

TEST_P(ModelReferenceTest, Float32) {
  const std::string name = GetParam();
  if (name == "cuda" && !WhyNoGpu().empty()) GTEST_SKIP() << "skipped: " << WhyNoGpu();
  for (const Network& network : kNetworks) ExpectNear(network, MakeTestDevice(name), 1e-5);
  ExpectNear(kMaxima, MakeTestDevice(name), 1e-5);
}

class ModelPrecisionTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = WhyNoGpu();
    if (!reason.empty()) GTEST_SKIP() << "skipped: " << reason;
  }
};

TEST_F(ModelPrecisionTest, Tf32) {
  for (const Network& network : kNetworks) ExpectNear(network, NewGpu(Precision::kTf32), 2e-3);
}

TEST_F(ModelPrecisionTest, Bfloat16) {
  for (const Network& network : kNetworks) ExpectNear(network, NewGpu(Precision::kBfloat16), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelReferenceTest, testing::Values("cpu", "delayed", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace keelson
