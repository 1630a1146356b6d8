// The layers over dense values on all devices: their formulas in double precision, and a model of
// them against the CPU.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model_devices_testing.h"
#include "core/model/model_testing.h"

namespace keelson {
namespace {

using Doubles = std::vector<double>;

class ModelLayersTest : public ModelOnDevicesTest {
 protected:
  struct Scores {
    std::vector<float> features;
    std::vector<Doubles> variables;
    std::vector<float> scores;
  };

  // What the model computes of one example, with random variables.
  Scores Compute(const std::string& model) const {
    TestModel test(model, 1, NewDevice());
    const Batch batch = RandomBatch(test.model->spec(), 1, 41);
    Scores result;
    const absl::Span<const float> features = batch.features.front().numbers.span();
    result.features.assign(features.begin(), features.end());
    for (const Tensor& value : test.values) {
      result.variables.emplace_back(value.span().begin(), value.span().end());
    }
    const absl::Status status = test.model->Predict(batch, &result.scores);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }
};

void ExpectClose(const std::vector<float>& found, const Doubles& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-6) << i;
}

// x W with W [x.size(), columns].
Doubles Product(const Doubles& x, const Doubles& w) {
  Doubles y(w.size() / x.size(), 0.0);
  for (size_t i = 0; i < w.size(); ++i) y[i % y.size()] += x[i / y.size()] * w[i];
  return y;
}

Doubles Plus(Doubles a, const Doubles& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

Doubles Times(Doubles a, const Doubles& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}

TEST_P(ModelLayersTest, CrossesAsItsFormula) {
  const Scores s = Compute(R"pb(
    input_shape: 5
    layers {
      name: "a"
      cross {}
      inputs: "features"
      inputs: "features"
    }
    layers {
      name: "b"
      cross { rank: 2 }
      inputs: "features"
      inputs: "a"
    }
    loss { kind: SOFTMAX_CROSS_ENTROPY })pb");
  const Doubles x0(s.features.begin(), s.features.end());
  const Doubles a = Plus(Times(x0, Plus(Product(x0, s.variables[0]), s.variables[1])), x0);
  const Doubles low = Product(Product(a, s.variables[2]), s.variables[3]);
  ExpectClose(s.scores, Plus(Times(x0, Plus(low, s.variables[4])), a));
}

TEST_P(ModelLayersTest, NormalizesPoolsAndGatesAsTheirFormulas) {
  const Scores s = Compute(R"pb(
    input_shape: 6
    layers { reshape { shape: [ -1, 3 ] } }
    layers { layer_norm { epsilon: 0.01 } }
    layers { softmax {} }
    layers { gelu {} }
    layers { silu {} }
    layers { global_average_pool {} }
    loss { kind: SOFTMAX_CROSS_ENTROPY })pb");
  Doubles expected(3, 0.0);
  for (size_t row = 0; row < 2; ++row) {
    const float* const x = s.features.data() + 3 * row;
    const double mean = (double{x[0]} + x[1] + x[2]) / 3;
    double variance = 0, sum = 0;
    for (int i = 0; i < 3; ++i) variance += (x[i] - mean) * (x[i] - mean) / 3;
    Doubles y(3);
    for (size_t i = 0; i < 3; ++i) {
      y[i] = std::exp(s.variables[0][i] * (x[i] - mean) / std::sqrt(variance + 0.01) +
                      s.variables[1][i]);
      sum += y[i];
    }
    for (size_t i = 0; i < 3; ++i) {
      const double share = y[i] / sum;
      const double gelu = share * (1 + std::erf(share / std::sqrt(2.0))) / 2;
      expected[i] += gelu / (1 + std::exp(-gelu)) / 2;
    }
  }
  ExpectClose(s.scores, expected);
}

TEST_P(ModelLayersTest, MultipliesVectorsAsItsFormulas) {
  const Scores s = Compute(R"pb(
    input_shape: 12
    layers {
      name: "a"
      slice { size: 4 }
      inputs: "features"
    }
    layers {
      name: "b"
      slice { begin: 4 size: 4 }
      inputs: "features"
    }
    layers {
      name: "c"
      slice { begin: 8 size: 4 }
      inputs: "features"
    }
    layers {
      name: "dot"
      dot {}
      inputs: "a"
      inputs: "b"
    }
    layers {
      name: "cosine"
      cosine { epsilon: 0.25 }
      inputs: "a"
      inputs: "c"
    }
    layers {
      name: "machine"
      factorization_machine {}
      inputs: "a"
      inputs: "b"
      inputs: "c"
    }
    layers {
      name: "all"
      concat {}
      inputs: "dot"
      inputs: "cosine"
      inputs: "machine"
    }
    layers { layer_norm { epsilon: 1 } }
    loss { kind: SOFTMAX_CROSS_ENTROPY })pb");
  const auto dot = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < 4; ++k) sum += double{s.features[4 * i + k]} * s.features[4 * j + k];
    return sum;
  };
  const Doubles all = {dot(0, 1), dot(0, 2) / std::sqrt((dot(0, 0) + 0.25) * (dot(2, 2) + 0.25)),
                       dot(0, 1) + dot(0, 2) + dot(1, 2)};
  const double mean = (all[0] + all[1] + all[2]) / 3;
  double variance = 0;
  for (const double x : all) variance += (x - mean) * (x - mean) / 3;
  Doubles expected;
  for (size_t i = 0; i < 3; ++i) {
    expected.push_back(s.variables[0][i] * (all[i] - mean) / std::sqrt(variance + 1) +
                       s.variables[1][i]);
  }
  ExpectClose(s.scores, expected);
}

TEST_P(ModelLayersTest, MultipliesAllPairsAndTransposes) {
  const Scores s = Compute(R"pb(
    input_shape: 12
    layers { reshape { shape: [ 3, 4 ] } }
    layers { transpose { axes: [ 1, 0 ] } }
    layers {
      name: "columns"
      flatten {}
    }
    layers {
      name: "a"
      slice { size: 3 }
      inputs: "columns"
    }
    layers {
      name: "b"
      slice { begin: 3 size: 3 }
      inputs: "columns"
    }
    layers {
      name: "d"
      slice { begin: 9 size: 3 }
      inputs: "columns"
    }
    layers {
      dot_interaction { diagonal: true }
      inputs: "a"
      inputs: "b"
      inputs: "d"
    }
    layers { dense { units: 2 } }
    loss { kind: SOFTMAX_CROSS_ENTROPY })pb");
  // Of columns of the features.
  const auto dot = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < 3; ++k) sum += double{s.features[4 * k + i]} * s.features[4 * k + j];
    return sum;
  };
  const Doubles pairs = {dot(0, 0), dot(0, 1), dot(0, 3), dot(1, 1), dot(1, 3), dot(3, 3)};
  Doubles expected;
  for (size_t unit = 0; unit < 2; ++unit) {
    double score = s.variables[1][unit];
    for (size_t i = 0; i < pairs.size(); ++i) score += pairs[i] * s.variables[0][2 * i + unit];
    expected.push_back(score);
  }
  ExpectClose(s.scores, expected);
}

// Every kind of layer over dense values, values that several layers take, rows of several sizes.
constexpr char kLayers[] = R"pb(
  input_shape: [ 4, 4, 2 ]
  layers {
    name: "in"
    conv2d { filters: 6 kernel_size: 3 padding: SAME }
  }
  layers {
    name: "norm"
    layer_norm {}
  }
  layers {
    name: "act"
    gelu {}
  }
  layers {
    name: "sum"
    add {}
    inputs: "act"
    inputs: "in"
  }
  layers {
    name: "pool"
    global_average_pool {}
  }
  layers {
    name: "x0"
    dense { units: 6 }
  }
  layers {
    name: "x1"
    cross {}
    inputs: "x0"
    inputs: "x0"
  }
  layers {
    name: "x2"
    cross { rank: 2 }
    inputs: "x0"
    inputs: "x1"
  }
  layers {
    name: "smooth"
    silu {}
  }
  layers {
    name: "rows"
    reshape { shape: [ 2, 3 ] }
  }
  layers {
    name: "shares"
    softmax {}
  }
  layers {
    name: "flat"
    reshape { shape: -1 }
  }
  layers {
    name: "dot"
    dot {}
    inputs: "x0"
    inputs: "pool"
  }
  layers {
    name: "cosine"
    cosine {}
    inputs: "x1"
    inputs: "x0"
  }
  layers {
    name: "machine"
    factorization_machine {}
    inputs: "x1"
    inputs: "pool"
    inputs: "x1"
  }
  layers {
    name: "pairs"
    dot_interaction {}
    inputs: "x1"
    inputs: "pool"
    inputs: "x0"
    inputs: "x1"
  }
  layers {
    name: "turned"
    transpose { axes: [ 2, 0, 1 ] }
    inputs: "sum"
  }
  layers {
    name: "turned_flat"
    flatten {}
  }
  layers {
    name: "all"
    concat {}
    inputs: "flat"
    inputs: "pool"
    inputs: "x1"
    inputs: "dot"
    inputs: "cosine"
    inputs: "machine"
    inputs: "pairs"
    inputs: "turned_flat"
  }
  layers { dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

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
  loss {
    kind: IN_BATCH_SOFTMAX
    queries: "query"
    items: "item"
    temperature: 0.25
    log_probability_label: "rate"
    weight_label: "trust"
  })pb";

TEST_P(ModelLayersTest, TellsTheOwnItemFromThoseOfTheBatch) {
  constexpr size_t kRows = 7, kFeatures = 5;
  TestModel test(kPairs, 1, NewDevice());
  // Towers that resemble each other, so that queries resemble their own items.
  for (int64_t i = 0; i < test.values[1].size(); ++i) {
    float& value = test.values[1].data()[i];
    value = test.values[0].data()[i] + 0.3f * value;
  }
  test.Load(1);
  const Batch batch = RandomBatch(test.model->spec(), kRows, 43);
  const absl::Span<const float> x = batch.features[0].numbers.span();
  std::vector<Doubles> queries, items;
  for (size_t i = 0; i < kRows; ++i) {
    const Doubles row(x.begin() + i * kFeatures, x.begin() + (i + 1) * kFeatures);
    const absl::Span<const float> w = test.values[0].span(), v = test.values[1].span();
    queries.push_back(Product(row, Doubles(w.begin(), w.end())));
    items.push_back(Product(row, Doubles(v.begin(), v.end())));
  }
  double loss = 0;
  Doubles own;
  int64_t first = 0, among_three = 0;
  for (size_t i = 0; i < kRows; ++i) {
    Doubles scores;
    double sum = 0;
    for (size_t j = 0; j < kRows; ++j) {
      const Doubles products = Times(queries[i], items[j]);
      const double product = std::accumulate(products.begin(), products.end(), 0.0) / 0.25;
      if (i == j) own.push_back(product);
      scores.push_back(product - batch.labels[0].data()[j]);
      sum += std::exp(scores[j]);
    }
    loss += batch.labels[1].data()[i] * (std::log(sum) - scores[i]);
    const auto higher = std::count_if(scores.begin(), scores.end(),
                                      [&](double score) { return score > scores[i]; });
    first += higher < 1 ? 1 : 0;
    among_three += higher < 3 ? 1 : 0;
  }
  std::vector<float> predictions;
  PairVectors pairs, predicted;
  const auto sums = test.model->Evaluate(
      batch, {{MetricSpec::Kind::kAccuracy}, {MetricSpec::Kind::kTopK, 3}}, &predictions, &pairs);
  ASSERT_TRUE(sums.ok()) << sums.status();
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_NEAR(pairs.queries[i * 4 + k], queries[i][k], 1e-5);
      EXPECT_NEAR(pairs.items[i * 4 + k], items[i][k], 1e-5);
    }
  }
  ASSERT_TRUE(test.model->PredictPairs(batch, &predicted).ok());
  EXPECT_EQ(predicted.queries, pairs.queries);
  EXPECT_EQ(predicted.items, pairs.items);
  EXPECT_NEAR(sums->loss, loss, 1e-5 * loss);
  EXPECT_THAT(sums->correct, testing::ElementsAre(first, among_three));
  EXPECT_THAT(first, testing::AllOf(testing::Gt(0), testing::Lt(int64_t{kRows})));
  ExpectClose(predictions, own);
  EXPECT_NEAR(test.Step(batch), loss / kRows, 1e-5 * loss);
}

void ExpectTheGradientsOfTheCpu(const char* model, std::unique_ptr<Device> device) {
  TestModel on_cpu(model);
  TestModel test(model, 1, std::move(device));
  for (const int64_t rows : {5, 1, 9}) {
    const Batch batch = RandomBatch(test.model->spec(), rows, 77);
    EXPECT_NEAR(test.Step(batch), on_cpu.Step(batch), 1e-5);
    for (size_t v = 0; v < test.gradients.size(); ++v) {
      for (int64_t i = 0; i < test.gradients[v].size(); ++i) {
        EXPECT_NEAR(test.gradients[v].data()[i], on_cpu.gradients[v].data()[i], 1e-5)
            << test.model->variables()[v].name << "[" << i << "]";
      }
    }
  }
}

TEST_P(ModelLayersTest, ComputesTheGradientsOfTheCpu) {
  for (const uint64_t order : Orders()) {
    for (const char* model : {kLayers, kPairs}) {
      SetOrder(order);
      ExpectTheGradientsOfTheCpu(model, NewDevice());
    }
  }
}

void ExpectTurnsToChangeNothing(const char* model, std::unique_ptr<Device> device) {
  TestModel test(model, 1, std::move(device));
  const Batch batch = RandomBatch(test.model->spec(), 6, 78);
  const Batch larger = RandomBatch(test.model->spec(), 11, 79);
  const double first = test.model->Evaluate(batch, {})->loss;
  const double loss = test.Step(batch);
  EXPECT_NEAR(loss * 6, first, 1e-5);
  const std::vector<std::vector<float>> gradients = Copy(test.gradients);
  EXPECT_EQ(test.model->Evaluate(batch, {})->loss, first);
  std::vector<float> scores;
  ASSERT_TRUE(test.model->Predict(larger, &scores).ok());
  EXPECT_EQ(test.Step(batch), loss);
  EXPECT_EQ(Copy(test.gradients), gradients);
}

TEST_P(ModelLayersTest, TrainsAndEvaluatesInTurn) {
  for (const char* model : {kLayers, kPairs}) ExpectTurnsToChangeNothing(model, NewDevice());
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelLayersTest, AllTestDevices(), TestDeviceName);

}  // namespace
}  // namespace keelson
