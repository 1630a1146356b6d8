// A model on several devices, compared with the same model on one.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model_devices_testing.h"
#include "core/model/model_testing.h"
#include "core/wire/value_codec.h"

namespace keelson {
namespace {

using testing::ElementsAre;

constexpr char kNetwork[] = R"pb(
  input_shape: [ 6, 6, 1 ]
  layers { conv2d { filters: 3 kernel_size: 3 } }
  layers { relu {} }
  layers { max_pool { size: 2 } }
  layers { flatten {} }
  layers { dense { units: 9 } }
  layers { tanh {} }
  layers { dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

constexpr char kOfIds[] = R"pb(
  features {
    name: "user"
    id {}
  }
  features {
    name: "seen"
    bag { weighted: true }
  }
  layers {
    name: "a"
    inputs: "user"
    embedding { rows: 6 dim: 5 }
  }
  layers {
    name: "b"
    inputs: "seen"
    embedding_bag { rows: 6 dim: 5 }
    variables_of: "a"
  }
  layers {
    name: "c"
    inputs: "seen"
    embedding_bag { rows: 9 dim: 5 combiner: SUM }
  }
  layers {
    add {}
    inputs: "a"
    inputs: "b"
    inputs: "c"
  }
  layers { tanh {} }
  layers { dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

constexpr char kNormalized[] = R"pb(
  input_shape: 5
  layers { batch_norm {} }
  layers { dense { units: 2 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

constexpr char kDropout[] = R"pb(
  input_shape: 400
  layers { dropout { rate: 0.5 } }
  layers { dense { units: 1 no_bias: true } }
  loss { kind: MEAN_SQUARED_ERROR })pb";

constexpr char kWeighted[] = R"pb(
  input_shape: 5
  layers {
    name: "kind"
    dense { units: 3 }
  }
  layers {
    name: "price"
    dense { units: 1 }
  }
  losses { kind: SOFTMAX_CROSS_ENTROPY scores: "kind" label: "a" weight_label: "trust" }
  losses { kind: HUBER delta: 0.5 weight: 0.3 weight_label: "trust" })pb";

// The same variables as a TestModel's of seed 1.
struct GroupModel {
  GroupModel(const std::string& text, std::unique_ptr<DeviceGroup> on) : group(std::move(on)) {
    model = *Model::Create(ParseModel(text), group.get());
    const TestModel one(text);
    for (size_t v = 0; v < one.values.size(); ++v) {
      gradients.emplace_back(one.values[v].shape());
      const absl::Status set = model->SetVariable(v, one.values[v].span());
      EXPECT_TRUE(set.ok()) << set;
    }
  }

  absl::StatusOr<StepResult> Compute(const Batch& batch, const StepOptions& options = {}) {
    const auto arrays = SpansOf(&gradients);
    return model->ComputeGradients(batch, options, {.arrays = arrays}, nullptr);
  }

  std::unique_ptr<DeviceGroup> group;
  std::unique_ptr<Model> model;
  std::vector<Tensor> gradients;
};

// By kind of device.
class ModelReplicasTest : public ModelOnDevicesTest {};

void ExpectNear(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  for (size_t v = 0; v < expected.size(); ++v) {
    double difference = 0;
    double norm = 0;
    for (int64_t i = 0; i < expected[v].size(); ++i) {
      difference += std::pow(found[v].data()[i] - expected[v].data()[i], 2);
      norm += std::pow(expected[v].data()[i], 2);
    }
    // Sums of float32 whose order depends on the device and the processor, and whose terms may be
    // many times what is left of them.
    EXPECT_LT(std::sqrt(difference), 1e-5 * std::sqrt(norm)) << v;
  }
}

void ExpectTheSame(const char* network, GroupModel several) {
  TestModel one(network);
  for (const int64_t rows : {12, 7, 3, 2, 1}) {
    for (const float max_norm : {0.0f, 0.01f}) {
      const Batch batch = RandomBatch(one.model->spec(), rows, static_cast<uint64_t>(rows));
      const StepOptions options = {.clip_global_norm = max_norm};
      const auto arrays = SpansOf(&one.gradients);
      const auto expected =
          one.model->ComputeGradients(batch, options, {.arrays = arrays}, nullptr);
      const auto found = several.Compute(batch, options);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_NEAR(found->loss, expected->loss, 1e-6 * expected->loss);
      ExpectNear(several.gradients, one.gradients);
      if (testing::Test::HasFailure()) FAIL() << rows << " rows";
    }
  }
}

TEST_P(ModelReplicasTest, ComputeWhatOneComputes) {
  for (const char* network : {kNetwork, kOfIds, kWeighted}) {
    for (const int replicas : {1, 2, 3}) {
      SCOPED_TRACE(replicas);
      ExpectTheSame(network, GroupModel(network, NewGroup(replicas)));
    }
  }
}

TEST_P(ModelReplicasTest, TheFirstBatchMayHaveFewerRowsThanThereAreDevices) {
  for (const char* network : {kNetwork, kOfIds}) {
    TestModel one(network);
    GroupModel several(network, NewGroup(3));
    for (const int64_t rows : {1, 2, 5}) {
      const Batch batch = RandomBatch(one.model->spec(), rows, 1);
      const double expected = one.Step(batch);
      const auto found = several.Compute(batch);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_NEAR(found->loss, expected, 1e-6 * expected);
      ExpectNear(several.gradients, one.gradients);
    }
  }
}

TEST_P(ModelReplicasTest, EachHasTheItemsOfItsPart) {
  constexpr char kPairs[] = R"pb(
    input_shape: 5
    layers {
      name: "query"
      dense { units: 4 no_bias: true }
    }
    layers {
      name: "item"
      inputs: "features"
      dense { units: 4 no_bias: true }
    }
    loss { kind: IN_BATCH_SOFTMAX queries: "query" items: "item" })pb";
  TestModel one(kPairs);
  GroupModel several(kPairs, NewGroup(2));
  const Batch batch = RandomBatch(one.model->spec(), 6, 1);
  const absl::Span<const float> numbers = batch.features[0].numbers.span();
  double expected = 0;
  std::vector<Tensor> gradients;
  for (const size_t part : {0, 1}) {
    Batch half = RandomBatch(one.model->spec(), 3, 1);
    std::copy_n(numbers.begin() + part * 15, 15, half.features[0].numbers.data());
    expected += one.Step(half) / 2;
    for (size_t v = 0; v < one.gradients.size(); ++v) {
      if (part == 0) gradients.emplace_back(one.gradients[v].shape());
      for (int64_t i = 0; i < gradients[v].size(); ++i) {
        gradients[v].data()[i] += one.gradients[v].data()[i] / 2;
      }
    }
  }
  const auto found = several.Compute(batch);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR(found->loss, expected, 1e-6 * expected);
  ExpectNear(several.gradients, gradients);
}

TEST_P(ModelReplicasTest, EvaluateAsOne) {
  GroupModel one(kNetwork, NewGroup(1));
  GroupModel several(kNetwork, NewGroup(2));
  const Batch batch = RandomBatch(one.model->spec(), 9, 1);
  ASSERT_TRUE(several.Compute(batch).ok());
  const MetricSpec accuracy{MetricSpec::Kind::kAccuracy, 1};
  const auto expected = one.model->Evaluate(batch, {accuracy});
  const auto found = several.model->Evaluate(batch, {accuracy});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->loss, expected->loss);
  EXPECT_EQ(found->correct, expected->correct);
}

// The steps of one model by wire memory are those of the other by arrays.
void ExpectSameByWire(GroupModel by_wire, GroupModel by_arrays) {
  EXPECT_TRUE(by_wire.model->uses_wire_memory());
  std::vector<VariableWire> wire;
  for (const VariableSpec& variable : by_wire.model->variables()) {
    wire.push_back({WholeArrayLayout(WireFormat::kFloat32, variable.shape.num_elements())});
  }
  const WireMemory memory = *by_wire.model->PrepareWire(wire, 1);
  for (uint64_t step = 0; step < 3; ++step) {
    for (size_t v = 0; v < wire.size(); ++v) {
      std::vector<float> values(wire[v].gradient.num_elements);
      FillRandom(step * 100 + v, 0.5f, absl::MakeSpan(values));
      EncodeElements(WireFormat::kFloat32, values, memory.values[0][v].data());
      ASSERT_TRUE(by_wire.model->LoadWire(v, 0).ok());
      ASSERT_TRUE(by_arrays.model->SetVariable(v, values).ok());
    }
    const Batch batch = RandomBatch(by_wire.model->spec(), 8, step);
    const auto expected = by_arrays.Compute(batch);
    const auto found = by_wire.model->ComputeGradients(batch, {}, {}, nullptr);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->loss, expected->loss);
    for (size_t v = 0; v < wire.size(); ++v) {
      std::vector<float> gradient(wire[v].gradient.num_elements);
      DecodeElements(WireFormat::kFloat32, memory.gradients[0][v].data(), absl::MakeSpan(gradient));
      EXPECT_EQ(absl::MakeConstSpan(gradient), absl::MakeConstSpan(by_arrays.gradients[v].span()))
          << "variable " << v << ", step " << step;
    }
  }
}

TEST_P(ModelReplicasTest, TakeValuesAndGiveGradientsByWireMemory) {
  for (const uint64_t order : Orders()) {
    SetOrder(order);
    ExpectSameByWire({kNetwork, NewGroup(3)}, {kNetwork, NewGroup(3)});
    if (HasFailure()) FAIL() << "order " << order;
  }
}

TEST_P(ModelReplicasTest, ALossThatIsNotFiniteOnAnyOfThemDeliversNothing) {
  GroupModel several(kNetwork, NewGroup(3));
  for (const size_t row : {0, 4, 8}) {
    Batch batch = RandomBatch(several.model->spec(), 9, 1);
    batch.features[0].numbers.data()[row * 36] = std::numeric_limits<float>::quiet_NaN();
    const auto result = several.Compute(batch);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->has_gradients) << "row " << row;
  }
}

TEST_P(ModelReplicasTest, SamplesOfStatisticsAreMeansByRows) {
  GroupModel several(kNormalized, NewGroup(2));
  const ModelSpec& spec = several.model->spec();
  const Batch batch = RandomBatch(spec, 5, 1);
  ASSERT_TRUE(several.Compute(batch).ok());
  // Rows 0 to 2 and 3 to 4.
  for (int64_t channel = 0; channel < 5; ++channel) {
    double mean = 0, variance = 0;
    for (const auto& [begin, end] : {std::pair{0, 3}, std::pair{3, 5}}) {
      const double rows = end - begin;
      double sum = 0, squares = 0;
      for (int64_t row = begin; row < end; ++row)
        sum += batch.features[0].numbers.data()[row * 5 + channel];
      for (int64_t row = begin; row < end; ++row) {
        squares += std::pow(batch.features[0].numbers.data()[row * 5 + channel] - sum / rows, 2);
      }
      mean += sum / 5;
      variance += squares / (rows - 1) * rows / 5;
    }
    const auto at = [&](const char* name) {
      for (size_t v = 0; v < spec.variables.size(); ++v) {
        if (spec.variables[v].name == name) return several.gradients[v].data()[channel];
      }
      ADD_FAILURE() << "no variable " << name;
      return 0.0f;
    };
    EXPECT_NEAR(at("batch_norm_1/moving_mean"), mean, 1e-6);
    EXPECT_NEAR(at("batch_norm_1/moving_variance"), variance, 1e-6);
  }
}

TEST_P(ModelReplicasTest, DropDifferentInputsAndTheSameOnesAgain) {
  GroupModel several(kDropout, NewGroup(2));
  Batch batch = MakeBatch(Tensor(Shape({2, 400})), Tensor(Shape({2})));
  std::fill_n(batch.features[0].numbers.data(), 800, 1.0f);
  ASSERT_TRUE(several.Compute(batch, {.dropout_seed = 1}).ok());
  const auto first = Copy(several.gradients);
  ASSERT_TRUE(several.Compute(batch, {.dropout_seed = 2}).ok());
  EXPECT_NE(Copy(several.gradients), first);
  ASSERT_TRUE(several.Compute(batch, {.dropout_seed = 1}).ok());
  EXPECT_EQ(Copy(several.gradients), first);
  // Inputs that both, one, or none of the devices have kept: a quarter, a half, a quarter.
  const auto dropped = std::count(first[0].begin(), first[0].end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(dropped), 100, 40);
}

TEST_P(ModelReplicasTest, TellOfGradientsFromTheLastLayer) {
  GroupModel several(kNetwork, NewGroup(2));
  const auto arrays = SpansOf(&several.gradients);
  std::vector<size_t> order;
  const auto result = several.model->ComputeGradients(
      RandomBatch(several.model->spec(), 4, 1), {}, {.arrays = arrays},
      [&](size_t variable) { order.push_back(variable); });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(order, ElementsAre(5, 4, 3, 2, 1, 0));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelReplicasTest, AllTestDevices(), TestDeviceName);

}  // namespace
}  // namespace keelson
