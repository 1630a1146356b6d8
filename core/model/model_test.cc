#include "core/model/model.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/model/model_devices_testing.h"
#include "core/model/model_testing.h"

namespace keelson {
namespace {

using testing::ElementsAre;

constexpr char kLinear[] = R"pb(
  input_shape: 4
  layers {
    name: "scores"
    dense { units: 3 }
  }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

constexpr char kConvolutional[] = R"pb(
  input_shape: [ 8, 8, 1 ]
  layers {
    name: "conv"
    conv2d { filters: 4 kernel_size: 3 }
  }
  layers { relu {} }
  layers { max_pool { size: 2 } }
  layers { flatten {} }
  layers {
    name: "hidden"
    dense { units: 16 }
  }
  layers { relu {} }
  layers { dropout { rate: 0.25 } }
  layers {
    name: "scores"
    dense { units: 3 }
  }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

constexpr char kOneScore[] = R"pb(
  input_shape: 4
  layers { dense { units: 1 } }
)pb";

MetricSpec Accuracy() { return {MetricSpec::Kind::kAccuracy, 1}; }

// The first `size` examples from `begin`.
Batch Slice(const Batch& batch, int64_t begin, int64_t size) {
  std::vector<int64_t> dims = batch.features[0].numbers.shape().dims();
  dims[0] = size;
  Batch slice = MakeBatch(Tensor(Shape(dims)), Tensor(Shape({size})));
  const int64_t row = batch.features[0].numbers.shape().row_elements();
  std::copy_n(batch.features[0].numbers.data() + begin * row, size * row,
              slice.features[0].numbers.data());
  std::copy_n(batch.labels[0].data() + begin, size, slice.labels[0].data());
  return slice;
}

// Score `unit` of example `n` of a model that is one dense layer.
double LinearScore(const TestModel& test, const Batch& batch, int64_t n, int64_t unit) {
  const int64_t inputs = test.values[0].shape().dim(0);
  const int64_t units = test.values[0].shape().dim(1);
  double score = test.values[1].data()[unit];
  for (int64_t i = 0; i < inputs; ++i) {
    score += double{batch.features[0].numbers.data()[n * inputs + i]} *
             test.values[0].data()[i * units + unit];
  }
  return score;
}

// By device: calls that are done when they return, calls that are not, a GPU's.
class ModelTest : public ModelOnDevicesTest {
 protected:
  TestModel Make(const std::string& text) const { return TestModel(text, 1, NewDevice()); }
};

TEST_P(ModelTest, RefusesABadConfiguration) {
  const auto device = NewDevice();
  const auto model = Model::Create(ParseModel("input_shape: 4"), device.get());
  EXPECT_EQ(model.status(),
            absl::InvalidArgumentError("model.layers: expected at least one, found none"));
}

TEST_P(ModelTest, ListsItsVariables) {
  const TestModel test = Make(kConvolutional);
  std::vector<std::string> names;
  for (const VariableSpec& v : test.model->variables()) names.push_back(v.name);
  EXPECT_THAT(names, ElementsAre("conv/kernel", "conv/bias", "hidden/kernel", "hidden/bias",
                                 "scores/kernel", "scores/bias"));
}

TEST_P(ModelTest, VariablesAreZerosUntilTheyAreSet) {
  const auto device = NewDevice();
  const auto model = *Model::Create(ParseModel(kLinear), device.get());
  const auto sums = model->Evaluate(RandomBatch(model->spec(), 5, 1), {});
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_NEAR(sums->loss, 5 * std::log(3.0), 1e-6);
}

TEST_P(ModelTest, SoftmaxCrossEntropyIsItsFormula) {
  TestModel test = Make(kLinear);
  const Batch batch = RandomBatch(test.model->spec(), 9, 2);
  double expected = 0;
  for (int64_t n = 0; n < 9; ++n) {
    double sum = 0;
    for (int64_t c = 0; c < 3; ++c) sum += std::exp(LinearScore(test, batch, n, c));
    expected += std::log(sum) -
                LinearScore(test, batch, n, static_cast<int64_t>(batch.labels[0].data()[n]));
  }
  EXPECT_NEAR(test.Step(batch), expected / 9, 1e-6);
  EXPECT_NEAR(test.model->Evaluate(batch, {})->loss, expected, 9e-6);
}

TEST_P(ModelTest, SigmoidCrossEntropyIsItsFormula) {
  TestModel test = Make(std::string(kOneScore) + "loss { kind: SIGMOID_CROSS_ENTROPY }");
  const Batch batch = RandomBatch(test.model->spec(), 9, 3);
  double expected = 0;
  int64_t correct = 0;
  for (int64_t n = 0; n < 9; ++n) {
    const double score = LinearScore(test, batch, n, 0);
    const double probability = 1 / (1 + std::exp(-score));
    const bool positive = batch.labels[0].data()[n] == 1;
    expected -= std::log(positive ? probability : 1 - probability);
    correct += (score > 0) == positive ? 1 : 0;
  }
  EXPECT_NEAR(test.Step(batch), expected / 9, 1e-6);
  const auto sums = test.model->Evaluate(batch, {Accuracy()});
  EXPECT_NEAR(sums->loss, expected, 9e-6);
  EXPECT_THAT(sums->correct, ElementsAre(correct));
}

TEST_P(ModelTest, MeanSquaredErrorIsItsFormula) {
  TestModel test = Make(std::string(kOneScore) + "loss { kind: MEAN_SQUARED_ERROR }");
  const Batch batch = RandomBatch(test.model->spec(), 9, 4);
  double expected = 0;
  for (int64_t n = 0; n < 9; ++n) {
    expected += std::pow(LinearScore(test, batch, n, 0) - batch.labels[0].data()[n], 2);
  }
  EXPECT_NEAR(test.Step(batch), expected / 9, 1e-6);
}

TEST_P(ModelTest, TwoRunsAreBitIdentical) {
  std::vector<double> losses[2];
  std::vector<std::vector<float>> gradients[2];
  for (int run = 0; run < 2; ++run) {
    TestModel test = Make(kConvolutional);
    for (uint64_t step = 0; step < 10; ++step) {
      losses[run].push_back(test.Step(RandomBatch(test.model->spec(), 33, step), step));
      test.Descend(0.05f);
    }
    gradients[run] = Copy(test.gradients);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST_P(ModelTest, DropoutFollowsItsSeed) {
  TestModel test = Make(kConvolutional);
  const Batch batch = RandomBatch(test.model->spec(), 16, 6);
  const double loss = test.Step(batch, 1);
  EXPECT_NE(test.Step(batch, 2), loss);
  EXPECT_EQ(test.Step(batch, 1), loss);
}

TEST_P(ModelTest, EvaluationDropsNothing) {
  TestModel with = Make(kConvolutional);
  std::string text = kConvolutional;
  text.replace(text.find("0.25"), 4, "0.00");
  TestModel without = Make(text);
  const Batch batch = RandomBatch(with.model->spec(), 16, 7);
  const double loss = with.model->Evaluate(batch, {})->loss;
  EXPECT_EQ(loss, without.model->Evaluate(batch, {})->loss);
  EXPECT_EQ(loss / 16, without.Step(batch));
  EXPECT_NE(loss / 16, with.Step(batch));
}

TEST_P(ModelTest, TwoDropoutLayersDropDifferentInputs) {
  TestModel test = Make(R"pb(input_shape: 4000
                             layers { dropout { rate: 0.5 } }
                             layers { dropout { rate: 0.5 } }
                             layers { dense { units: 1 no_bias: true } }
                             loss { kind: MEAN_SQUARED_ERROR })pb");
  std::fill_n(test.values[0].data(), 4000, 1.0f);
  test.Load(0);
  Batch batch = MakeBatch(Tensor(Shape({1, 4000})), Tensor(Shape({1})));
  std::fill_n(batch.features[0].numbers.data(), 4000, 1.0f);
  // A quarter of the inputs is left, four times as large; with the same mask it would be a half.
  EXPECT_NEAR(std::sqrt(test.Step(batch, 3)), 4000, 600);
}

TEST_P(ModelTest, DeliversGradientsFromTheLastLayerAsTheyAreReady) {
  TestModel test = Make(kConvolutional);
  const Batch batch = RandomBatch(test.model->spec(), 8, 8);
  test.Step(batch);
  const auto expected = Copy(test.gradients);
  for (Tensor& g : test.gradients) std::fill_n(g.data(), g.size(), 0.0f);
  std::vector<size_t> order;
  const auto arrays = SpansOf(&test.gradients);
  const auto result =
      test.model->ComputeGradients(batch, {}, {.arrays = arrays}, [&](size_t variable) {
        order.push_back(variable);
        EXPECT_EQ(Copy(test.gradients)[variable], expected[variable]) << "at its callback";
      });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(order, ElementsAre(5, 4, 3, 2, 1, 0));
}

TEST(ModelOnCpuTest, LearnsATinyBatchByHeart) {
  TestModel test(kConvolutional);
  const Batch batch = RandomBatch(test.model->spec(), 8, 5);
  for (uint64_t step = 0; step < 160; ++step) {
    test.Step(batch, step);
    test.Descend(0.25f);
  }
  const auto sums = test.model->Evaluate(batch, {Accuracy()});
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_THAT(sums->correct, ElementsAre(8));
  EXPECT_LT(sums->loss / 8, 0.05);
}

TEST(ModelOnCpuTest, ItsOwnMemoryServesAsValuesAndGradients) {
  TestModel copied(kConvolutional);
  const auto device = MakeTestDevice("cpu");
  const auto model = *Model::Create(ParseModel(kConvolutional), device.get());
  const std::vector<absl::Span<float>> values = model->HostValues();
  ASSERT_EQ(values.size(), copied.values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i].size(), copied.values[i].span().size());
    std::copy(copied.values[i].span().begin(), copied.values[i].span().end(), values[i].begin());
    ASSERT_TRUE(model->SetVariable(i, values[i]).ok()) << "onto itself";
  }
  const Batch batch = RandomBatch(model->spec(), 8, 8);
  const std::vector<absl::Span<float>> gradients = model->HostGradients();
  const auto result =
      model->ComputeGradients(batch, {.dropout_seed = 1}, {.arrays = gradients}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, copied.Step(batch, 1));
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_EQ(gradients[i], absl::Span<const float>(copied.gradients[i].span())) << i;
  }
}

// A gradient that was handed over may be overwritten at once, by the values that answer its push.
TEST(ModelOnCpuTest, AVariableIsNotUsedAfterItsGradientIsReady) {
  TestModel test(kConvolutional);
  const Batch batch = RandomBatch(test.model->spec(), 8, 8);
  test.Step(batch);
  const auto expected = Copy(test.gradients);
  const std::vector<absl::Span<float>> values = test.model->HostValues();
  const auto arrays = SpansOf(&test.gradients);
  const auto result =
      test.model->ComputeGradients(batch, {}, {.arrays = arrays}, [&](size_t variable) {
        for (float& value : values[variable]) {
          value = std::numeric_limits<float>::quiet_NaN();
        }
      });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Copy(test.gradients), expected);
}

TEST_P(ModelTest, ClipsTheTrainedVariablesByTheirJointNorm) {
  TestModel test = Make(R"pb(input_shape: 4
                             layers { dense { units: 5 } }
                             layers { batch_norm {} }
                             layers { dense { units: 3 } }
                             loss { kind: SOFTMAX_CROSS_ENTROPY })pb");
  const Batch batch = RandomBatch(test.model->spec(), 8, 1);
  test.Step(batch);
  const auto whole = Copy(test.gradients);
  const auto arrays = SpansOf(&test.gradients);
  const auto clipped = [&](float max_norm) {
    const auto result = test.model->ComputeGradients(batch, {.clip_global_norm = max_norm},
                                                     {.arrays = arrays}, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    return Copy(test.gradients);
  };
  EXPECT_EQ(clipped(1000), whole);
  const auto scaled = clipped(0.01f);
  double squares = 0;
  for (size_t v = 0; v < scaled.size(); ++v) {
    if (!test.model->variables()[v].trained()) {
      EXPECT_EQ(scaled[v], whole[v]) << "samples of statistics";
      continue;
    }
    for (const float g : scaled[v]) squares += double{g} * g;
  }
  EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-7);
}

TEST_P(ModelTest, FrozenVariablesDoNotCountForTheJointNorm) {
  TestModel test = Make(kLinear);
  const Batch batch = RandomBatch(test.model->spec(), 8, 1);
  const auto arrays = SpansOf(&test.gradients);
  const auto clipped = [&] {
    EXPECT_TRUE(
        test.model
            ->ComputeGradients(batch, {.clip_global_norm = 0.01f}, {.arrays = arrays}, nullptr)
            .ok());
    return Copy(test.gradients);
  };
  test.Step(batch);
  const auto whole = Copy(test.gradients);
  ASSERT_GE(whole.size(), 2u);
  clipped();
  test.model->Freeze({0});
  const auto scaled = clipped();
  EXPECT_EQ(scaled[0], whole[0]);
  double squares = 0;
  for (size_t v = 1; v < scaled.size(); ++v) {
    for (const float g : scaled[v]) squares += double{g} * g;
  }
  EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-7);
}

TEST_P(ModelTest, ALossThatIsNotFiniteEndsTheStepBeforeAGradient) {
  TestModel test = Make(kLinear);
  Batch batch = RandomBatch(test.model->spec(), 4, 8);
  const auto arrays = SpansOf(&test.gradients);
  const GradientTarget target = {.arrays = arrays};
  EXPECT_TRUE(test.model->ComputeGradients(batch, {}, target, nullptr)->has_gradients);
  batch.features[0].numbers.data()[5] = std::numeric_limits<float>::quiet_NaN();
  for (Tensor& g : test.gradients) std::fill_n(g.data(), g.size(), 7.0f);
  const auto result = test.model->ComputeGradients(
      batch, {}, target, [](size_t variable) { ADD_FAILURE() << "told of " << variable; });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(std::isfinite(result->loss));
  EXPECT_FALSE(result->has_gradients);
  EXPECT_THAT(Copy(test.gradients)[0], testing::Each(7.0f));
}

TEST_P(ModelTest, TakesBatchesOfAnySize) {
  TestModel reused = Make(kConvolutional);
  for (int64_t size : {3, 7, 2, 7, 1}) {
    TestModel fresh = Make(kConvolutional);
    const Batch batch = RandomBatch(fresh.model->spec(), size, 9);
    EXPECT_EQ(reused.Step(batch, 1), fresh.Step(batch, 1));
    EXPECT_EQ(Copy(reused.gradients), Copy(fresh.gradients));
  }
}

TEST_P(ModelTest, EvaluatesLargerBatchesThanItTrainsOn) {
  TestModel test = Make(kConvolutional);
  const Batch batch = RandomBatch(test.model->spec(), 30, 10);
  const double loss = test.Step(Slice(batch, 0, 4), 1);
  ASSERT_TRUE(test.model->Evaluate(batch, {}).ok());
  EXPECT_EQ(test.Step(Slice(batch, 0, 4), 1), loss);
}

TEST_P(ModelTest, EvaluationSumsAddUpOverBatches) {
  TestModel test = Make(kConvolutional);
  const Batch batch = RandomBatch(test.model->spec(), 23, 11);
  const std::vector<MetricSpec> metrics = {Accuracy(), {MetricSpec::Kind::kTopK, 2}};
  const EvaluationSums whole = *test.model->Evaluate(batch, metrics);
  EvaluationSums parts;
  parts.Add(*test.model->Evaluate(Slice(batch, 0, 10), metrics));
  parts.Add(*test.model->Evaluate(Slice(batch, 10, 10), metrics));
  parts.Add(*test.model->Evaluate(Slice(batch, 20, 3), metrics));
  EXPECT_EQ(parts.examples, 23);
  EXPECT_NEAR(parts.loss, whole.loss, 1e-4);
  EXPECT_EQ(parts.correct, whole.correct);
  EXPECT_LE(whole.correct[0], whole.correct[1]);
}

TEST_P(ModelTest, PredictsTheScoresThatItEvaluates) {
  TestModel test = Make(kConvolutional);
  Batch batch = RandomBatch(test.model->spec(), 23, 12);
  std::vector<float> evaluated;
  ASSERT_TRUE(test.model->Evaluate(batch, {}, &evaluated).ok());
  EXPECT_EQ(evaluated.size(), 23u * 3);
  batch.labels.clear();
  std::vector<float> predicted = {1, 2, 3};
  const absl::Status status = test.model->Predict(batch, &predicted);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(predicted, evaluated);
}

TEST_P(ModelTest, PredictsNothingOfBadFeatures) {
  TestModel test = Make(kLinear);
  std::vector<float> scores;
  EXPECT_EQ(test.model->Predict(Batch(), &scores),
            absl::InvalidArgumentError("batch: expected one example or more, found none"));
  const int64_t inputs = test.model->spec().records.only_numbers()->shape.dim(0);
  const Shape expected = {2, inputs};
  const Shape wrong = {2, inputs + 1};
  EXPECT_EQ(test.model->Predict(MakeBatch(Tensor(wrong), Tensor()), &scores),
            absl::InvalidArgumentError("batch: features: expected the shape " +
                                       expected.ToString() + ", found " + wrong.ToString()));
}

TEST_P(ModelTest, RefusesBadVariables) {
  TestModel test = Make(kLinear);
  const std::vector<float> values(12);
  EXPECT_EQ(test.model->SetVariable(2, values),
            absl::InvalidArgumentError("variable: expected 0 to 1, found 2"));
  EXPECT_EQ(test.model->SetVariable(1, values),
            absl::InvalidArgumentError("scores/bias: expected 3 elements, found 12"));
}

TEST_P(ModelTest, RefusesBadGradients) {
  TestModel test = Make(kLinear);
  const Batch batch = RandomBatch(test.model->spec(), 2, 12);
  EXPECT_EQ(test.model->ComputeGradients(batch, {}, {}, nullptr).status(),
            absl::InvalidArgumentError("gradients: expected 2 arrays, found 0"));
  std::swap(test.gradients[0], test.gradients[1]);
  const auto arrays = SpansOf(&test.gradients);
  EXPECT_EQ(test.model->ComputeGradients(batch, {}, {.arrays = arrays}, nullptr).status(),
            absl::InvalidArgumentError("gradient of scores/kernel: expected 12 elements, found 3"));
}

// The error of a batch with these shapes and labels.
absl::Status BatchError(TestModel* test, const Shape& features, const Shape& labels,
                        float label = 0) {
  Batch batch = MakeBatch(Tensor(features), Tensor(labels));
  for (float& l : batch.labels[0].span()) l = label;
  const auto evaluated = test->model->Evaluate(batch, {});
  const auto arrays = SpansOf(&test->gradients);
  EXPECT_EQ(test->model->ComputeGradients(batch, {}, {.arrays = arrays}, nullptr).status(),
            evaluated.status());
  return evaluated.status();
}

TEST_P(ModelTest, RefusesBatchesOfTheWrongShape) {
  TestModel test = Make(kLinear);
  EXPECT_EQ(BatchError(&test, Shape({0, 4}), Shape({0})),
            absl::InvalidArgumentError("batch: expected one example or more, found none"));
  EXPECT_EQ(BatchError(&test, Shape({2, 5}), Shape({2})),
            absl::InvalidArgumentError("batch: features: expected the shape [2, 4], found [2, 5]"));
  EXPECT_EQ(BatchError(&test, Shape({3, 4}), Shape({2})),
            absl::InvalidArgumentError("batch: label: expected the shape [3], found [2]"));
  EXPECT_EQ(BatchError(&test, Shape({2, 4}), Shape({2, 1})),
            absl::InvalidArgumentError("batch: label: expected the shape [2], found [2, 1]"));
}

TEST_P(ModelTest, RefusesLabelsOutOfRange) {
  const Shape features({1, 4}), labels({1});
  TestModel softmax = Make(kLinear);
  EXPECT_EQ(BatchError(&softmax, features, labels, 3),
            absl::InvalidArgumentError("batch: label[0]: expected a class from 0 to 2, found 3"));
  EXPECT_EQ(BatchError(&softmax, features, labels, -1),
            absl::InvalidArgumentError("batch: label[0]: expected a class from 0 to 2, found -1"));
  EXPECT_EQ(BatchError(&softmax, features, labels, 0.5f),
            absl::InvalidArgumentError("batch: label[0]: expected a class from 0 to 2, found 0.5"));
  TestModel sigmoid = Make(std::string(kOneScore) + "loss { kind: SIGMOID_CROSS_ENTROPY }");
  EXPECT_EQ(BatchError(&sigmoid, features, labels, 2),
            absl::InvalidArgumentError("batch: label[0]: expected 0 or 1, found 2"));
  TestModel squared = Make(std::string(kOneScore) + "loss { kind: MEAN_SQUARED_ERROR }");
  EXPECT_EQ(BatchError(&squared, features, labels, std::numeric_limits<float>::infinity()),
            absl::InvalidArgumentError("batch: label[0]: expected a finite number, found inf"));
  EXPECT_TRUE(BatchError(&softmax, features, labels, 2).ok());
}

TEST_P(ModelTest, RefusesWeightsThatAreNone) {
  TestModel test =
      Make(std::string(kOneScore) + "loss { kind: MEAN_SQUARED_ERROR weight_label: 'trust' }");
  Batch batch = RandomBatch(test.model->spec(), 3, 1);
  EXPECT_TRUE(test.model->Evaluate(batch, {}).ok());
  for (const float weight : {-0.5f, std::numeric_limits<float>::infinity()}) {
    batch.labels[1].data()[2] = weight;
    EXPECT_EQ(test.model->Evaluate(batch, {}).status().message(),
              absl::StrCat("batch: trust[2]: expected a finite weight >= 0, found ", weight));
  }
}

// One record twice counts as much as with the weight 2, and another as little as not at all, up to
// the number of the records by which the sum is divided.
TEST_P(ModelTest, AWeightIsANumberOfRecords) {
  const std::string model = "input_shape: 4 layers { dense { units: 3 } } ";
  TestModel weighted =
      Make(model + "loss { kind: SOFTMAX_CROSS_ENTROPY weight: 0.5 weight_label: 'trust' }");
  TestModel plain = Make(model + "loss { kind: SOFTMAX_CROSS_ENTROPY weight: 0.5 }");
  Batch batch = RandomBatch(weighted.model->spec(), 3, 2);
  const float weights[] = {2, 0, 1};
  std::copy_n(weights, 3, batch.labels[1].data());
  Batch repeated = RandomBatch(plain.model->spec(), 3, 2);
  for (const int64_t from : {0, 2}) {
    const int64_t to = from == 0 ? 1 : 2;
    std::copy_n(batch.features[0].numbers.data() + from * 4, 4,
                repeated.features[0].numbers.data() + to * 4);
    repeated.labels[0].data()[to] = batch.labels[0].data()[from];
  }
  EXPECT_NEAR(weighted.Step(batch), plain.Step(repeated), 1e-6);
  for (size_t v = 0; v < plain.gradients.size(); ++v) {
    for (int64_t i = 0; i < plain.gradients[v].size(); ++i) {
      EXPECT_NEAR(weighted.gradients[v].data()[i], plain.gradients[v].data()[i], 1e-6);
    }
  }
  const auto evaluated = weighted.model->Evaluate(batch, {});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_NEAR(evaluated->loss, plain.model->Evaluate(repeated, {})->loss, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelTest, AllTestDevices(), TestDeviceName);

}  // namespace
}  // namespace keelson
