// Embeddings of ids and of bags of them on all devices, against their formulas in double precision,
// whose gradients are differences.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model_devices_testing.h"
#include "core/model/model_testing.h"
#include "testing/device/reference_operations.h"

namespace keelson {
namespace {

using reference::Doubles;
using testing::StartsWith;

constexpr int64_t kDim = 3;

// Every combiner, with weights and without; "seen" shares the variable of "item" with its two
// layers of one combiner, and "user" has two layers of their own variables.
constexpr char kModel[] = R"pb(
  features {
    name: "user"
    id {}
  }
  features {
    name: "item"
    id {}
  }
  features {
    name: "tags"
    bag {}
  }
  features {
    name: "seen"
    bag { weighted: true }
  }
  layers {
    name: "u"
    inputs: "user"
    embedding { rows: 7 dim: 3 }
  }
  layers {
    name: "other"
    inputs: "user"
    embedding { rows: 9 dim: 3 }
  }
  layers {
    name: "i"
    inputs: "item"
    embedding { rows: 11 dim: 3 }
  }
  layers {
    name: "seen_mean"
    inputs: "seen"
    embedding_bag { rows: 11 dim: 3 combiner: MEAN }
    variables_of: "i"
  }
  layers {
    name: "seen_again"
    inputs: "seen"
    embedding_bag { rows: 11 dim: 3 combiner: MEAN }
    variables_of: "i"
  }
  layers {
    name: "seen_root"
    inputs: "seen"
    embedding_bag { rows: 12 dim: 3 combiner: SQRTN }
  }
  layers {
    name: "tags_sum"
    inputs: "tags"
    embedding_bag { rows: 5 dim: 3 combiner: SUM }
  }
  layers {
    name: "tags_root"
    inputs: "tags"
    embedding_bag { rows: 5 dim: 3 combiner: SQRTN }
    variables_of: "tags_sum"
  }
  layers {
    name: "sum"
    add {}
    inputs: "other"
    inputs: "i"
    inputs: "seen_mean"
    inputs: "seen_again"
    inputs: "seen_root"
    inputs: "tags_sum"
    inputs: "tags_root"
  }
  layers {
    name: "match"
    multiply {}
    inputs: "u"
    inputs: "sum"
  }
  layers { dense { units: 1 } }
  loss { kind: MEAN_SQUARED_ERROR })pb";

// What the model above computes.
class Formula {
 public:
  explicit Formula(const Batch& batch) : batch_(batch) {}

  // Of the variables in their order, one after the other.
  double MeanLoss(const Doubles& variables) const {
    const double* const user = variables.data();
    const double* const other = user + 7 * kDim;
    const double* const item = other + 9 * kDim;
    const double* const root = item + 11 * kDim;
    const double* const tags = root + 12 * kDim;
    const double* const kernel = tags + 5 * kDim;
    double sum = 0;
    for (int64_t r = 0; r < batch_.size(); ++r) {
      double score = kernel[kDim];
      for (int64_t d = 0; d < kDim; ++d) {
        const double added =
            other[Id(0, r) * kDim + d] + item[Id(1, r) * kDim + d] +
            2 * Bag(3, r, Combiner::kMean, item + d) + Bag(3, r, Combiner::kSqrtN, root + d) +
            Bag(2, r, Combiner::kSum, tags + d) + Bag(2, r, Combiner::kSqrtN, tags + d);
        score += kernel[d] * user[Id(0, r) * kDim + d] * added;
      }
      sum += std::pow(score - double{batch_.labels[0].data()[r]}, 2);
    }
    return sum / static_cast<double>(batch_.size());
  }

 private:
  int64_t Id(size_t feature, int64_t record) const {
    return static_cast<int64_t>(batch_.features[feature].ids[record]);
  }

  // A column of the bag's embeddings, which begins at `column`.
  double Bag(size_t feature, int64_t record, Combiner combiner, const double* column) const {
    const FeatureValues& values = batch_.features[feature];
    double sum = 0, weights = 0, squares = 0;
    for (int64_t k = values.offsets[record]; k < values.offsets[record + 1]; ++k) {
      const double weight = values.weights.empty() ? 1 : double{values.weights[k]};
      sum += weight * column[values.ids[k] * kDim];
      weights += weight;
      squares += weight * weight;
    }
    if (squares == 0 || combiner == Combiner::kSum) return sum;
    return sum / (combiner == Combiner::kMean ? weights : std::sqrt(squares));
  }

  const Batch& batch_;
};

// By device.
class ModelEmbeddingsTest : public ModelOnDevicesTest {};

void ExpectAsTheFormula(TestModel* test, const Batch& batch) {
  const Formula formula(batch);
  Doubles variables;
  for (const Tensor& value : test->values) {
    variables.insert(variables.end(), value.span().begin(), value.span().end());
  }
  const Doubles expected = reference::FiniteDifferences(
      [&](const Doubles& at) { return formula.MeanLoss(at); }, variables);
  const auto near = [](double value) { return 1e-5 * std::max(1.0, std::abs(value)); };
  const double loss = formula.MeanLoss(variables);
  EXPECT_NEAR(test->Step(batch), loss, near(loss));
  size_t at = 0;
  for (size_t v = 0; v < test->gradients.size(); ++v) {
    for (const float found : test->gradients[v].span()) {
      EXPECT_NEAR(found, expected[at], near(expected[at])) << test->model->variables()[v].name;
      ++at;
    }
  }
}

Batch WithoutBags(const ModelSpec& spec, int64_t rows) {
  Batch batch = RandomBatch(spec, rows, 5);
  for (const size_t bag : {2, 3}) {
    batch.features[bag] = {.offsets = std::vector<int64_t>(rows + 1, 0)};
  }
  return batch;
}

// Bags of so many ids of each record.
Batch WithLongBags(const ModelSpec& spec, int64_t rows, int64_t ids) {
  Batch batch = RandomBatch(spec, rows, 6);
  for (const size_t bag : {2, 3}) {
    FeatureValues& values = batch.features[bag];
    for (int64_t i = 0; i <= rows; ++i) values.offsets[i] = i * ids;
    values.ids.assign(rows * ids, 0);
    for (size_t k = 0; k < values.ids.size(); ++k) values.ids[k] = k * k % 5;
    values.weights.assign(bag == 3 ? values.ids.size() : 0, 0.25f);
  }
  return batch;
}

TEST_P(ModelEmbeddingsTest, AreTheirFormulasWhateverABatchHas) {
  for (const uint64_t order : Orders()) {
    SetOrder(order);
    TestModel test(kModel, 1, NewDevice());
    const ModelSpec& spec = test.model->spec();
    // Several batches of one size: what a device repeats finds the ids of each.
    for (uint64_t seed = 0; seed < 5; ++seed) {
      ExpectAsTheFormula(&test, RandomBatch(spec, 9, seed));
    }
    ExpectAsTheFormula(&test, WithoutBags(spec, 9));
    ExpectAsTheFormula(&test, WithLongBags(spec, 9, 40));
    ExpectAsTheFormula(&test, RandomBatch(spec, 9, 20));
    ExpectAsTheFormula(&test, RandomBatch(spec, 1, 21));
    ExpectAsTheFormula(&test, RandomBatch(spec, 30, 22));
    ExpectAsTheFormula(&test, WithoutBags(spec, 9));
    if (HasFailure()) FAIL() << "order " << order;
  }
}

TEST_P(ModelEmbeddingsTest, EvaluatesAndTrainsInTurn) {
  TestModel test(kModel, 1, NewDevice());
  const Batch few = RandomBatch(test.model->spec(), 9, 1);
  const Batch many = WithLongBags(test.model->spec(), 9, 40);
  const double first = test.model->Evaluate(few, {})->loss;
  const double loss = test.Step(few);
  EXPECT_NEAR(first / 9, loss, 1e-6);
  const std::vector<std::vector<float>> gradients = Copy(test.gradients);
  EXPECT_NEAR(test.model->Evaluate(many, {})->loss / 9, test.Step(many), 1e-6);
  EXPECT_EQ(test.model->Evaluate(few, {})->loss, first);
  EXPECT_EQ(test.Step(few), loss);
  EXPECT_EQ(Copy(test.gradients), gradients);
}

TEST_P(ModelEmbeddingsTest, RefusesAnIdWithoutARow) {
  TestModel test(kModel, 1, NewDevice());
  Batch batch = RandomBatch(test.model->spec(), 4, 1);
  batch.features[0].ids[2] = 7;
  const auto arrays = SpansOf(&test.gradients);
  const absl::Status expected =
      absl::InvalidArgumentError("batch: user of record 2: expected an id from 0 to 6, found 7");
  EXPECT_EQ(test.model->ComputeGradients(batch, {}, {.arrays = arrays}, nullptr).status(),
            expected);
  EXPECT_EQ(test.model->Evaluate(batch, {}).status(), expected);
  batch.features[0].ids[2] = 6;
  ExpectAsTheFormula(&test, batch);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelEmbeddingsTest, AllTestDevices(), TestDeviceName);

TEST(ModelEmbeddingsMemoryTest, AStepIsRepeatedWhileTheIdsFit) {
  auto owned = MakeTestDevice("delayed");
  const auto* const device = static_cast<DelayedDevice*>(owned.get());
  TestModel test(kModel, 1, std::move(owned));
  const ModelSpec& spec = test.model->spec();
  test.Step(WithLongBags(spec, 9, 4));
  // There is room for half as many again.
  for (const int64_t ids : {3, 6, 1, 0, 5}) test.Step(WithLongBags(spec, 9, ids));
  EXPECT_EQ(device->repetitions(), 5);
  test.Step(WithLongBags(spec, 9, 7));
  EXPECT_EQ(device->repetitions(), 5);
  test.Step(WithLongBags(spec, 9, 10));
  EXPECT_EQ(device->repetitions(), 6);
}

TEST(ModelEmbeddingsMemoryTest, ABatchWithTooManyIdsLeavesRoomForASmallerOne) {
  auto owned = MakeTestDevice("delayed");
  auto* const device = static_cast<DelayedDevice*>(owned.get());
  TestModel test(kModel, 1, std::move(owned));
  const ModelSpec& spec = test.model->spec();
  const Batch small = RandomBatch(spec, 4, 1);
  const Batch large = WithLongBags(spec, 4, 5000);
  const double loss = test.Step(small);
  device->set_memory_limit(50000);
  const auto arrays = SpansOf(&test.gradients);
  for (int i = 0; i < 2; ++i) {
    const absl::Status status =
        test.model->ComputeGradients(large, {}, {.arrays = arrays}, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                StartsWith("a batch of 4: device delayed: out of memory"));
    EXPECT_EQ(test.Step(small), loss);
  }
}

}  // namespace
}  // namespace keelson
