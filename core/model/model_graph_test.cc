// Graphs of layers on every kind of device, compared with the CPU.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/model/model_devices_testing.h"
#include "core/model/model_testing.h"

namespace keelson {
namespace {

// Branches that join again in every way, values that are taken twice, shared variables, two
// features, and losses of which one takes what a layer takes too.
constexpr char kGraph[] = R"pb(
  features {
    name: "more"
    dense { shape: 8 }
  }
  features {
    name: "features"
    dense { shape: [ 6, 6, 2 ] }
  }
  layers {
    name: "in"
    inputs: "features"
    conv2d { filters: 4 kernel_size: 3 padding: SAME }
  }
  layers {
    name: "a"
    conv2d { filters: 4 kernel_size: 3 padding: SAME }
  }
  layers {
    name: "act"
    relu {}
  }
  layers {
    name: "b"
    conv2d { filters: 4 kernel_size: 3 padding: SAME }
    variables_of: "a"
  }
  layers {
    name: "norm"
    batch_norm {}
  }
  layers {
    name: "sum"
    add {}
    inputs: "norm"
    inputs: "in"
    inputs: "act"
  }
  layers {
    name: "wide"
    concat {}
    inputs: "sum"
    inputs: "features"
  }
  layers {
    name: "part"
    slice { begin: 1 size: 4 }
    inputs: "wide"
  }
  layers {
    name: "gate"
    sigmoid {}
    inputs: "part"
  }
  layers {
    name: "open"
    multiply {}
    inputs: "gate"
    inputs: "sum"
  }
  layers {
    name: "half"
    scale { factor: 0.5 }
    inputs: "open"
  }
  layers {
    name: "flat"
    flatten {}
    inputs: "half"
  }
  layers {
    name: "hidden"
    dense { units: 8 }
  }
  layers {
    name: "again"
    dense { units: 8 }
  }
  layers {
    name: "twice"
    add {}
    inputs: "again"
    inputs: "hidden"
    inputs: "more"
  }
  layers {
    name: "scores"
    dense { units: 3 }
  }
  losses { kind: SOFTMAX_CROSS_ENTROPY }
  losses { kind: SOFTMAX_CROSS_ENTROPY scores: "hidden" label: "other" weight: 0.25 })pb";

class ModelGraphTest : public testing::TestWithParam<const char*> {};

void ExpectClose(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t v = 0; v < found.size(); ++v) {
    for (int64_t i = 0; i < found[v].size(); ++i) {
      const float value = expected[v].data()[i];
      EXPECT_NEAR(found[v].data()[i], value, 1e-5 + 1e-4 * std::abs(value)) << v << "[" << i << "]";
    }
  }
}

// Without these, zeros, a variance is none.
void SetStatistics(TestModel* test) {
  for (size_t v = 0; v < test->values.size(); ++v) {
    if (test->model->variables()[v].trained()) continue;
    for (float& statistic : test->values[v].span()) statistic = 1;
    test->Load(v);
  }
}

TEST_P(ModelGraphTest, ComputesTheGradientsOfTheCpu) {
  TestModel on_cpu(kGraph);
  TestModel test(kGraph, 1, GetParam());
  for (const int64_t rows : {5, 1, 9}) {
    const Batch batch = RandomBatch(test.model->spec(), rows, 77);
    EXPECT_NEAR(test.Step(batch), on_cpu.Step(batch), 1e-5);
    ExpectClose(test.gradients, on_cpu.gradients);
  }
}

TEST_P(ModelGraphTest, TrainsAndEvaluatesInTurn) {
  TestModel test(kGraph, 1, GetParam());
  SetStatistics(&test);
  const Batch batch = RandomBatch(test.model->spec(), 6, 78);
  const Batch larger = RandomBatch(test.model->spec(), 11, 79);
  // Before there is memory for gradients, with it, and after more rows.
  const double first = test.model->Evaluate(batch, {})->loss;
  const double loss = test.Step(batch);
  const std::vector<std::vector<float>> gradients = Copy(test.gradients);
  EXPECT_EQ(test.model->Evaluate(batch, {})->loss, first);
  std::vector<float> scores;
  ASSERT_TRUE(test.model->Predict(larger, &scores).ok());
  EXPECT_EQ(test.Step(batch), loss);
  EXPECT_EQ(Copy(test.gradients), gradients);
  EXPECT_EQ(test.model->Evaluate(batch, {})->loss, first);
}

TEST_P(ModelGraphTest, TellsOfASharedGradientOnceWhenItIsWhole) {
  TestModel test(kGraph, 1, GetParam());
  const Batch batch = RandomBatch(test.model->spec(), 4, 80);
  test.Step(batch);
  std::vector<int> told(test.values.size(), 0);
  std::vector<Tensor> gradients;
  for (const Tensor& value : test.values) gradients.emplace_back(value.shape());
  const std::vector<absl::Span<float>> arrays = SpansOf(&gradients);
  const auto result =
      test.model->ComputeGradients(batch, {}, {.arrays = arrays}, [&](size_t variable) {
        ++told[variable];
        EXPECT_THAT(arrays[variable], testing::ElementsAreArray(test.gradients[variable].span()));
      });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(told, testing::Each(1));
}

TEST_P(ModelGraphTest, TellsTheLossesOneByOne) {
  TestModel test(kGraph, 1, GetParam());
  SetStatistics(&test);
  const Batch batch = RandomBatch(test.model->spec(), 7, 81);
  const auto sums = test.model->Evaluate(batch, {});
  ASSERT_TRUE(sums.ok()) << sums.status();
  ASSERT_EQ(sums->losses.size(), 2u);
  EXPECT_GT(sums->losses[1], 0);
  EXPECT_NEAR(sums->loss, sums->losses[0] + 0.25 * sums->losses[1], 1e-5 * sums->loss);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelGraphTest, AllTestDevices(), TestDeviceName);

}  // namespace
}  // namespace keelson
