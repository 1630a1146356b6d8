// Batch norm as a layer: which statistics it uses, and what it leaves for the servers. Its
// gradients are in gradient_test.cc.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/model/model_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr char kFeatures[] =
    "input_shape: 5 layers { batch_norm {} } layers { dense { units: 2 } }";
constexpr char kImages[] =
    "input_shape: [3, 4, 2] layers { batch_norm {} } layers { flatten {} } "
    "layers { dense { units: 2 } }";

// The first layer of a model, batch norm, by itself. gamma is 2, 3, ..., beta is -1, the moving
// mean is 1, 2, ..., the moving variance is 4.
class BatchNormTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto spec = InferModelSpec(
        ParseModel(std::string(GetParam()) + "loss { kind: SOFTMAX_CROSS_ENTROPY }"));
    ASSERT_TRUE(spec.ok()) << spec.status();
    spec_ = spec->layers[0];
    channels_ = spec_.output.dims().back();
    for (const VariableSpec& variable : spec->variables) {
      values_.push_back(New(variable.shape.num_elements()));
      gradients_.push_back(New(variable.shape.num_elements()));
    }
    std::vector<Parameter> parameters;
    for (size_t i = 0; i < values_.size(); ++i) {
      parameters.push_back({values_[i].get(), gradients_[i].get()});
    }
    std::vector<float> rising(channels_);
    for (size_t c = 0; c < rising.size(); ++c) rising[c] = static_cast<float>(c + 1);
    device_->CopyToDevice(rising, values_[*spec_.moving_mean].get());
    for (float& x : rising) x += 1;
    device_->CopyToDevice(rising, values_[*spec_.gamma].get());
    device_->Fill(-1, channels_, values_[*spec_.beta].get());
    device_->Fill(4, channels_, values_[*spec_.moving_variance].get());
    layer_ = MakeLayer(spec_, 0, parameters);
  }

  std::unique_ptr<DeviceMemory> New(int64_t floats) { return *device_->Allocate(floats); }
  std::vector<float> Read(const DeviceMemory& memory) {
    std::vector<float> values(memory.size());
    EXPECT_TRUE(device_->CopyToHost(memory, absl::MakeSpan(values)).ok());
    return values;
  }
  std::vector<float> Gradient(size_t variable) { return Read(*gradients_[variable]); }
  int64_t Elements(int64_t batch) const { return batch * spec_.output.num_elements(); }
  std::vector<float> Forward(const Pass& pass) {
    x_ = New(Elements(pass.batch));
    y_ = New(Elements(pass.batch));
    input_.resize(Elements(pass.batch));
    FillRandom(3, 2, absl::MakeSpan(input_));
    device_->CopyToDevice(input_, x_.get());
    layer_->Forward(device_.get(), pass, {x_.get()}, y_.get());
    return Read(*y_);
  }
  // gamma * (x - mean) / sqrt(variance + epsilon) + beta
  std::vector<float> Normalized(const std::vector<double>& mean,
                                const std::vector<double>& variance) const {
    std::vector<float> y;
    for (size_t i = 0; i < input_.size(); ++i) {
      const size_t c = i % channels_;
      const double gamma = static_cast<double>(c) + 2;
      y.push_back(static_cast<float>(
          gamma * (input_[i] - mean[c]) / std::sqrt(variance[c] + double{1e-3f}) - 1));
    }
    return y;
  }
  // The statistics of the input's channels, with the biased variance.
  void Statistics(std::vector<double>* mean, std::vector<double>* variance) const {
    const double rows = static_cast<double>(input_.size() / channels_);
    mean->assign(channels_, 0);
    variance->assign(channels_, 0);
    for (size_t i = 0; i < input_.size(); ++i) (*mean)[i % channels_] += input_[i] / rows;
    for (size_t i = 0; i < input_.size(); ++i) {
      const double off = input_[i] - (*mean)[i % channels_];
      (*variance)[i % channels_] += off * off / rows;
    }
  }

  const std::unique_ptr<Device> device_ = *CreateDevice("cpu", {.threads = 1});
  LayerSpec spec_;
  int64_t channels_ = 0;
  std::vector<std::unique_ptr<DeviceMemory>> values_;
  std::vector<std::unique_ptr<DeviceMemory>> gradients_;
  std::unique_ptr<Layer> layer_;
  std::vector<float> input_;
  std::unique_ptr<DeviceMemory> x_;
  std::unique_ptr<DeviceMemory> y_;
};

TEST_P(BatchNormTest, TrainingNormalizesByTheBatchAndLeavesItsStatistics) {
  for (const int64_t batch : {2, 7}) {
    const std::vector<float> y = Forward({.batch = batch, .training = true});
    std::vector<double> mean, variance;
    Statistics(&mean, &variance);
    EXPECT_THAT(y, Pointwise(FloatNear(1e-4f), Normalized(mean, variance)));
    EXPECT_THAT(Gradient(*spec_.moving_mean), Pointwise(FloatNear(1e-5f), mean));
    const double rows = static_cast<double>(input_.size()) / static_cast<double>(channels_);
    for (double& v : variance) v *= rows / (rows - 1);
    EXPECT_THAT(Gradient(*spec_.moving_variance), Pointwise(FloatNear(1e-5f), variance));
  }
}

TEST_P(BatchNormTest, EvaluationNormalizesByTheMovingStatisticsAndLeavesNothing) {
  for (const size_t variable : spec_.variables()) {
    device_->Fill(77, channels_, gradients_[variable].get());
  }
  const std::vector<float> y = Forward({.batch = 3, .training = false});
  std::vector<double> mean;
  for (int64_t c = 0; c < channels_; ++c) mean.push_back(static_cast<double>(c) + 1);
  const std::vector<double> variance(mean.size(), 4);
  EXPECT_THAT(y, Pointwise(FloatNear(1e-5f), Normalized(mean, variance)));
  for (const size_t variable : spec_.variables()) EXPECT_THAT(Gradient(variable), Each(77));
}

TEST_P(BatchNormTest, OneExample) {
  const Pass pass = {.batch = 1, .training = true};
  const std::vector<float> y = Forward(pass);
  std::vector<double> mean, variance;
  Statistics(&mean, &variance);
  EXPECT_THAT(y, Pointwise(FloatNear(1e-4f), Normalized(mean, variance)));
  EXPECT_THAT(Gradient(*spec_.moving_mean), Pointwise(FloatNear(1e-5f), mean));

  const std::unique_ptr<DeviceMemory> dy = New(Elements(1)), dx = New(Elements(1));
  device_->Fill(1, Elements(1), dy.get());
  device_->Fill(77, Elements(1), dx.get());
  layer_->Backward(device_.get(), pass, {x_.get()}, *y_, dy.get(), {dx.get()});
  // The same everywhere, so it is all taken back by the mean.
  EXPECT_THAT(Read(*dx), Each(FloatNear(0, 1e-4f)));
  const auto rows = static_cast<float>(Elements(1) / channels_);
  EXPECT_THAT(Gradient(*spec_.beta), Each(FloatNear(rows, 1e-5f)));
  EXPECT_THAT(Gradient(*spec_.gamma), Each(FloatNear(0, 1e-4f)));
  EXPECT_THAT(Gradient(*spec_.moving_mean), Pointwise(FloatNear(1e-5f), mean));
  if (rows > 1) return;
  EXPECT_THAT(Gradient(*spec_.moving_variance), Each(0)) << "no number divided by 0";
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormTest, testing::Values(kFeatures, kImages),
                         [](const auto& info) { return info.index == 0 ? "Features" : "Images"; });

constexpr char kModel[] = R"pb(input_shape: 4
                               layers { dense { units: 6 no_bias: true } }
                               layers { batch_norm {} }
                               layers { relu {} }
                               layers { dense { units: 3 } }
                               loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

class BatchNormModelTest : public testing::TestWithParam<const char*> {};

TEST_P(BatchNormModelTest, DeliversTheSamplesAndEvaluatesWithTheAverages) {
  TestModel test(kModel, 1, GetParam());
  const Batch batch = RandomBatch(test.model->spec(), 16, 5);
  const double loss = test.Step(batch);
  const auto evaluate = [&] { return test.model->Evaluate(batch, {})->loss / 16; };
  const LayerSpec& layer = test.model->spec().layers[1];
  const auto set = [&](size_t variable, float factor, float offset) {
    for (int64_t i = 0; i < test.values[variable].size(); ++i) {
      test.values[variable].data()[i] = factor * test.gradients[variable].data()[i] + offset;
    }
    test.Load(variable);
  };
  set(*layer.moving_mean, 0, 1);
  set(*layer.moving_variance, 0, 1);
  EXPECT_GT(std::abs(evaluate() - loss), 0.01);
  // With the batch's own statistics, the variance biased again, evaluation is what training was.
  set(*layer.moving_mean, 1, 0);
  set(*layer.moving_variance, 15.0f / 16, 0);
  EXPECT_NEAR(evaluate(), loss, 1e-6);
  // Training does not look at them.
  EXPECT_EQ(test.Step(batch), loss);
}

TEST_P(BatchNormModelTest, SamplesAreNotClipped) {
  TestModel test(kModel, 1, GetParam());
  const Batch batch = RandomBatch(test.model->spec(), 16, 5);
  test.Step(batch);
  const LayerSpec& layer = test.model->spec().layers[1];
  std::vector<std::vector<float>> samples;
  for (const size_t variable : {*layer.moving_mean, *layer.moving_variance}) {
    const absl::Span<float> sample = test.gradients[variable].span();
    samples.emplace_back(sample.begin(), sample.end());
  }
  const auto result = test.model->ComputeGradients(batch, {.clip_global_norm = 0.01f},
                                                   {.arrays = SpansOf(&test.gradients)}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(test.gradients[*layer.moving_mean].span(), ElementsAreArray(samples[0]));
  EXPECT_THAT(test.gradients[*layer.moving_variance].span(), ElementsAreArray(samples[1]));
  double squares = 0;
  for (size_t v = 0; v < test.gradients.size(); ++v) {
    if (!test.model->variables()[v].trained()) continue;
    for (const float g : test.gradients[v].span()) squares += double{g} * g;
  }
  EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-6);
}

TEST_P(BatchNormModelTest, TheFirstLayersAveragesAreDeliveredThoughNothingIsTrainedThere) {
  TestModel test(R"pb(input_shape: 2
                      layers { batch_norm { no_scale: true no_center: true } }
                      layers { dense { units: 3 } }
                      loss { kind: SOFTMAX_CROSS_ENTROPY })pb",
                 1, GetParam());
  Batch batch = RandomBatch(test.model->spec(), 2, 5);
  const std::vector<float> features = {1, -2, 3, 6};
  std::copy(features.begin(), features.end(), batch.features[0].numbers.data());
  test.Step(batch);
  EXPECT_THAT(test.gradients[0].span(), ElementsAre(2, 2));
  EXPECT_THAT(test.gradients[1].span(), ElementsAre(2, 32));
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNormModelTest, testing::Values("cpu", "delayed"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace keelson
