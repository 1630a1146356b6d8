// Layers over tables on all devices: beside the same layers over variables with the same rows,
// whose formulas model_embeddings_test.cc checks.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/model/model_devices_testing.h"
#include "core/model/model_testing.h"
#include "core/model/row_source.h"
#include "core/model/spec/row_indexer.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr int64_t kSpreadIds = 20;
// Ids far from each other, the last and the first of all among them.
uint64_t SpreadId(uint64_t number) {
  return number == 0 ? ~uint64_t{0} : (number - 1) * 0x9e3779b97f4a7c15;
}

// A table that three layers of two features share, and another that has one of the two features,
// too. "%x" is the rows of x.
constexpr char kLayersOverRows[] = R"pb(
  features {
    name: "user"
    id {}
  }
  features {
    name: "seen"
    bag { weighted: true }
  }
  layers { name: "u" inputs: "user" embedding { %a } }
  layers {
    name: "mean"
    inputs: "seen"
    embedding_bag { %a combiner: MEAN } %of
  }
  layers {
    name: "root"
    inputs: "seen"
    embedding_bag { %a combiner: SQRTN } %of
  }
  layers { name: "other" inputs: "user" embedding { %b } }
  layers {
    name: "sum"
    add {}
    inputs: "mean"
    inputs: "root"
    inputs: "other"
  }
  layers {
    name: "match"
    multiply {}
    inputs: "u"
    inputs: "sum"
  }
  layers { dense { units: 1 } }
  loss { kind: MEAN_SQUARED_ERROR })pb";

constexpr int64_t kRowDim = 5;

std::string OverVariables() {
  return absl::StrReplaceAll(
      kLayersOverRows,
      {{"%of", "variables_of: 'u'"}, {"%a", "rows: 20 dim: 5"}, {"%b", "rows: 20 dim: 5"}});
}
std::string OverTables() {
  return absl::StrCat(
      "tables { name: 'a' dim: 5 } tables { name: 'b' dim: 5 }",
      absl::StrReplaceAll(kLayersOverRows,
                          {{"%of", ""}, {"%a", "table: 'a'"}, {"%b", "table: 'b'"}}));
}

// Rows of ids, by table.
class MapSource : public RowSource {
 public:
  absl::Status ReadRows(size_t table, absl::Span<const uint64_t> ids,
                        absl::Span<float> rows) override {
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto found = rows_.find({table, ids[i]});
      if (found == rows_.end()) return absl::NotFoundError(absl::StrCat("row ", ids[i]));
      std::copy(found->second.begin(), found->second.end(), rows.begin() + i * kRowDim);
    }
    return absl::OkStatus();
  }
  void Set(size_t table, uint64_t id, absl::Span<const float> row) {
    rows_[{table, id}].assign(row.begin(), row.end());
  }

 private:
  std::map<std::pair<size_t, uint64_t>, std::vector<float>> rows_;
};

// The model over tables beside the one over variables, on devices of one kind.
struct TwoModels {
  TwoModels(std::unique_ptr<Device> one, std::unique_ptr<Device> two)
      : variables(OverVariables(), 1, std::move(one)), tables(OverTables(), 1, std::move(two)) {
    // The variables are those of "u" and "other", and the dense layer's two.
    for (size_t i = 0; i < 2; ++i) {
      const auto from = variables.values[i + 2].span();
      std::copy(from.begin(), from.end(), tables.values[i].data());
      tables.Load(i);
      for (uint64_t n = 0; n < kSpreadIds; ++n) {
        source.Set(i, SpreadId(n), variables.values[i].span().subspan(n * kRowDim, kRowDim));
      }
    }
  }

  // The batch of the model over variables, for the one over tables.
  Batch WithSpreadIds(const Batch& batch) const {
    Batch spread;
    for (const FeatureValues& feature : batch.features) {
      FeatureValues& to = spread.features.emplace_back();
      for (const uint64_t id : feature.ids) to.ids.push_back(SpreadId(id));
      to.offsets = feature.offsets;
      to.weights = feature.weights;
    }
    const auto labels = batch.labels[0].span();
    spread.labels.emplace_back(batch.labels[0].shape());
    std::copy(labels.begin(), labels.end(), spread.labels[0].data());
    RowIndexer(TableFeaturesOf(tables.model->spec())).Index(&spread);
    return spread;
  }

  absl::Status Load(const Batch& batch) {
    return LoadRows(batch, &source, &buffer, tables.model.get());
  }

  // Computes both; expects the same bits.
  void Step(const Batch& batch, const StepOptions& options = {}) {
    const auto variable_arrays = SpansOf(&variables.gradients);
    const auto expected =
        variables.model->ComputeGradients(batch, options, {.arrays = variable_arrays}, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const Batch spread = WithSpreadIds(batch);
    ASSERT_EQ(Load(spread), absl::OkStatus());
    std::vector<Tensor> rows;
    for (const BatchRows& of_table : spread.rows) {
      rows.emplace_back(Shape({static_cast<int64_t>(of_table.ids.size()), kRowDim}));
    }
    const auto arrays = SpansOf(&tables.gradients), row_arrays = SpansOf(&rows);
    std::vector<size_t> ready;
    const auto found = tables.model->ComputeGradients(
        spread, options,
        {.arrays = arrays,
         .rows = row_arrays,
         .on_rows_ready = [&](size_t table) { ready.push_back(table); }},
        nullptr);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->loss, expected->loss);
    EXPECT_THAT(ready, testing::UnorderedElementsAre(0, 1));
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(tables.gradients[i].span(), variables.gradients[i + 2].span()) << i;
      ExpectRowsOf(variables.gradients[i], spread.rows[i], rows[i]);
    }
  }

  // The gradients of a table's rows are those of the variable's rows, and the others are 0.
  static void ExpectRowsOf(const Tensor& variable, const BatchRows& rows, const Tensor& found) {
    std::map<uint64_t, size_t> place;
    for (size_t k = 0; k < rows.ids.size(); ++k) place[rows.ids[k]] = k;
    for (uint64_t n = 0; n < kSpreadIds; ++n) {
      const auto expected = variable.span().subspan(n * kRowDim, kRowDim);
      const auto at = place.find(SpreadId(n));
      if (at == place.end()) {
        EXPECT_THAT(expected, Each(0.0f)) << n;
      } else {
        EXPECT_EQ(found.span().subspan(at->second * kRowDim, kRowDim), expected) << n;
      }
    }
  }

  TestModel variables;
  TestModel tables;
  MapSource source;
  std::vector<float> buffer;
};

class ModelTablesTest : public ModelOnDevicesTest {
 protected:
  TwoModels NewModels() const { return TwoModels(NewDevice(), NewDevice()); }
};

Batch WithoutSeen(const ModelSpec& spec, int64_t rows) {
  Batch batch = RandomBatch(spec, rows, 5);
  batch.features[1] = {.offsets = std::vector<int64_t>(rows + 1, 0)};
  return batch;
}

TEST_P(ModelTablesTest, GradientsAreThoseOfVariablesWithTheSameRows) {
  for (const uint64_t order : Orders()) {
    SetOrder(order);
    TwoModels models = NewModels();
    const ModelSpec& spec = models.variables.model->spec();
    for (uint64_t seed = 0; seed < 4; ++seed) models.Step(RandomBatch(spec, 9, seed));
    models.Step(WithoutSeen(spec, 9));
    models.Step(RandomBatch(spec, 1, 21));
    models.Step(RandomBatch(spec, 30, 22));
    models.Step(WithoutSeen(spec, 2));
    models.Step(RandomBatch(spec, 9, 23));
    if (HasFailure()) FAIL() << "order " << order;
  }
}

TEST_P(ModelTablesTest, ClippingIsByTheNormOfRowsAndVariablesTogether) {
  TwoModels models = NewModels();
  const Batch batch = RandomBatch(models.variables.model->spec(), 9, 1);
  const Batch spread = models.WithSpreadIds(batch);
  const auto squares = [&](float clip, size_t frozen_tables) {
    const std::vector<size_t> frozen = {1};
    models.tables.model->Freeze({}, absl::MakeConstSpan(frozen).first(frozen_tables));
    EXPECT_EQ(models.Load(spread), absl::OkStatus());
    std::vector<Tensor> rows;
    for (const BatchRows& of_table : spread.rows) {
      rows.emplace_back(Shape({static_cast<int64_t>(of_table.ids.size()), kRowDim}));
    }
    const auto arrays = SpansOf(&models.tables.gradients), row_arrays = SpansOf(&rows);
    const auto result = models.tables.model->ComputeGradients(
        spread, {.clip_global_norm = clip}, {.arrays = arrays, .rows = row_arrays}, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    std::vector<double> sums;
    for (const auto& array : arrays) {
      double& sum = sums.emplace_back();
      for (const float g : array) sum += double{g} * g;
    }
    for (const auto& array : row_arrays) {
      double& sum = sums.emplace_back();
      for (const float g : array) sum += double{g} * g;
    }
    return sums;
  };
  const auto norm = [](const std::vector<double>& sums) {
    double sum = 0;
    for (const double each : sums) sum += each;
    return std::sqrt(sum);
  };
  const std::vector<double> whole = squares(0, 0);
  const auto limit = static_cast<float>(norm(whole) / 4);
  const std::vector<double> clipped = squares(limit, 0);
  EXPECT_NEAR(norm(clipped), limit, 1e-5 * limit);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(clipped[i], whole[i] / 16, 1e-5 * whole[i]) << i;
  }
  std::vector<double> without_frozen = squares(limit, 1);
  EXPECT_EQ(without_frozen.back(), whole.back());
  without_frozen.pop_back();
  EXPECT_NEAR(norm(without_frozen), limit, 1e-5 * limit);
}

TEST_P(ModelTablesTest, EvaluatesAndPredictsWithRowsOfASource) {
  TwoModels models = NewModels();
  for (const int64_t size : {9, 30, 4}) {
    const Batch batch = RandomBatch(models.variables.model->spec(), size, 3);
    const Batch spread = models.WithSpreadIds(batch);
    std::vector<float> expected, found, predicted;
    const auto sums = models.variables.model->Evaluate(batch, {}, &expected);
    ASSERT_TRUE(sums.ok()) << sums.status();
    ASSERT_EQ(models.Load(spread), absl::OkStatus());
    EXPECT_EQ(models.tables.model->Evaluate(spread, {}, &found)->loss, sums->loss);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(models.tables.model->Predict(spread, &predicted), absl::OkStatus());
    EXPECT_EQ(predicted, expected);
  }
}

TEST_P(ModelTablesTest, GradientsCanBeDeliveredLater) {
  TwoModels models = NewModels();
  const Batch spread = models.WithSpreadIds(RandomBatch(models.variables.model->spec(), 9, 1));
  ASSERT_EQ(models.Load(spread), absl::OkStatus());
  std::vector<Tensor> at_once, later;
  for (const BatchRows& of_table : spread.rows) {
    at_once.emplace_back(Shape({static_cast<int64_t>(of_table.ids.size()), kRowDim}));
    later.emplace_back(at_once.back().shape());
  }
  const auto arrays = SpansOf(&models.tables.gradients);
  const auto to = SpansOf(&at_once), to_later = SpansOf(&later);
  Model* const model = models.tables.model.get();
  ASSERT_TRUE(model->ComputeGradients(spread, {}, {.arrays = arrays, .rows = to}, nullptr).ok());
  ASSERT_TRUE(model->ComputeGradients(spread, {.deliver = false}, {}, nullptr).ok());
  ASSERT_EQ(model->DeliverGradients({.arrays = arrays, .rows = to_later}, nullptr),
            absl::OkStatus());
  EXPECT_EQ(Copy(later), Copy(at_once));
}

TEST_P(ModelTablesTest, RefusesRowsThatAreNotTheBatchs) {
  TwoModels models = NewModels();
  Model* const model = models.tables.model.get();
  const Batch spread = models.WithSpreadIds(RandomBatch(models.variables.model->spec(), 4, 1));
  const int64_t ids = static_cast<int64_t>(spread.rows[1].ids.size());
  std::vector<float> scores;
  EXPECT_EQ(model->Predict(spread, &scores),
            absl::FailedPreconditionError(absl::StrCat("rows of a: expected the batch's ",
                                                       spread.rows[0].ids.size(), ", found none")));
  ASSERT_EQ(models.Load(spread), absl::OkStatus());
  ASSERT_EQ(model->SetRows(1, std::vector<float>((ids + 1) * kRowDim)), absl::OkStatus());
  EXPECT_EQ(model->Evaluate(spread, {}).status(),
            absl::FailedPreconditionError(
                absl::StrCat("rows of b: expected the batch's ", ids, ", found ", ids + 1)));
  EXPECT_EQ(model->SetRows(2, {}), absl::InvalidArgumentError("table: expected one of 2, found 2"));
  EXPECT_EQ(model->SetRows(0, std::vector<float>(kRowDim + 1)),
            absl::InvalidArgumentError("rows of a: expected rows of 5 numbers, found 6 numbers"));
  ASSERT_EQ(models.Load(spread), absl::OkStatus());
  const auto arrays = SpansOf(&models.tables.gradients);
  EXPECT_EQ(model->ComputeGradients(spread, {}, {.arrays = arrays}, nullptr).status(),
            absl::InvalidArgumentError("gradients of rows: expected 2 arrays, found 0"));
  std::vector<Tensor> rows;
  for (size_t t = 0; t < 2; ++t) rows.emplace_back(Shape({1, kRowDim}));
  const auto few = SpansOf(&rows);
  EXPECT_EQ(model->ComputeGradients(spread, {}, {.arrays = arrays, .rows = few}, nullptr).status(),
            absl::InvalidArgumentError(absl::StrCat("gradient of the rows of a: expected ",
                                                    spread.rows[0].ids.size() * kRowDim,
                                                    " elements, found 5")));
}

TEST_P(ModelTablesTest, ModelsWithTablesHaveOneDevice) {
  const auto group = NewGroup(2);
  EXPECT_EQ(Model::Create(ParseModel(OverTables()), group.get()).status(),
            absl::InvalidArgumentError("device: expected one for a model with tables, found 2"));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelTablesTest, AllTestDevices(), TestDeviceName);

TEST(ModelTablesMemoryTest, AStepIsRepeatedWhileTheRowsFit) {
  auto owned = MakeTestDevice("delayed");
  const auto* const device = static_cast<DelayedDevice*>(owned.get());
  TestModel test(
      "tables { name: 'w' dim: 2 } features { name: 'words' bag {} } "
      "layers { embedding_bag { table: 'w' } } layers { dense { units: 1 } } "
      "loss { kind: MEAN_SQUARED_ERROR }",
      1, std::move(owned));
  const auto step = [&](int64_t ids) {
    Batch batch;
    Resize(1, test.model->spec().records, &batch);
    batch.labels[0].data()[0] = 1;
    // The feature's ids are as many each time.
    batch.features[0].offsets = {0, 30};
    for (int64_t k = 0; k < 30; ++k) batch.features[0].ids.push_back(k % ids);
    RowIndexer(TableFeaturesOf(test.model->spec())).Index(&batch);
    std::vector<float> rows(batch.rows[0].ids.size() * 2, 0.5f);
    EXPECT_EQ(test.model->SetRows(0, rows), absl::OkStatus());
    const auto arrays = SpansOf(&test.gradients);
    const std::vector<absl::Span<float>> row_arrays = {absl::MakeSpan(rows)};
    const auto result =
        test.model->ComputeGradients(batch, {}, {.arrays = arrays, .rows = row_arrays}, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
  };
  step(10);
  for (const int64_t ids : {9, 15, 1, 10}) step(ids);
  EXPECT_EQ(device->repetitions(), 4);
  step(16);
  EXPECT_EQ(device->repetitions(), 4);
  step(24);
  EXPECT_EQ(device->repetitions(), 5);
}

TEST(ModelTablesMemoryTest, TooManyRowsLeaveRoomForFewer) {
  auto owned = MakeTestDevice("delayed");
  auto* const device = static_cast<DelayedDevice*>(owned.get());
  TestModel test(OverTables(), 1, std::move(owned));
  Model* const model = test.model.get();
  ASSERT_EQ(model->SetRows(0, std::vector<float>(10 * kRowDim)), absl::OkStatus());
  device->set_memory_limit(50000);
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = model->SetRows(0, std::vector<float>(9000 * kRowDim));
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                StartsWith("9000 rows of a: device delayed: out of memory"));
    EXPECT_EQ(model->SetRows(0, std::vector<float>(20 * kRowDim)), absl::OkStatus());
  }
}

}  // namespace
}  // namespace keelson
