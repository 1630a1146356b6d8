#include "core/optim/table_optimizers.h"

#include <string>
#include <vector>

#include "core/optim/optim_testing.h"
#include "core/optim/row_optimizer_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kTableRate = 0.5f;

absl::StatusOr<TableOptimizers> TryTables(const std::string& optimizer,
                                          const v1::StaleGradientConfig& stale = {}) {
  return TableOptimizers::Create({ParseAs<v1::OptimizerConfig>(optimizer), stale, kTableRate},
                                 {{"users", 2, {}}, {"items", 3, {}}, {"words", 1, {}}});
}

TableOptimizers Tables(const std::string& optimizer) {
  absl::StatusOr<TableOptimizers> tables = TryTables(optimizer);
  EXPECT_TRUE(tables.ok()) << tables.status();
  return *std::move(tables);
}

// A row after an update with gradients of 1 at the base rate; three steps were missed before.
std::vector<float> Updated(const RowOptimizer& optimizer) {
  std::vector<float> row(optimizer.row_floats(), 2);
  InitializeSlots(optimizer, row.data());
  const std::vector<float> gradient(optimizer.dim(), 1.0f);
  float* const rows[] = {row.data()};
  const uint16_t updates[] = {0};
  const uint32_t missed[] = {3};
  optimizer.Update({rows,
                    {WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(gradient.data()), 0},
                    updates,
                    missed,
                    5,
                    kTableRate,
                    kTableRate});
  return row;
}

TEST(TableOptimizersTest, WithoutGroupsAllHaveTheAlgorithmOfTheJob) {
  const TableOptimizers tables = Tables("row_wise_adagrad { initial_accumulator: 8 }");
  EXPECT_EQ(tables.Of(0).dim(), 2u);
  EXPECT_EQ(tables.Of(1).dim(), 3u);
  EXPECT_THAT(Updated(tables.Of(0)), ElementsAre(2 - 0.5f / 3, 2 - 0.5f / 3, 9));
  EXPECT_EQ(tables.Of(1).row_floats(), 4u);
  EXPECT_EQ(tables.Of(2).row_floats(), 2u);
}

TEST(TableOptimizersTest, TheFirstGroupThatMatchesTheNameDecides) {
  const TableOptimizers tables = Tables(
      "sgd {} clip_value: 0.25 groups { variables: 'u*' momentum {} learning_rate: 0.25 }"
      "groups { variables: 'dense/*' frozen: true }"
      "groups { variables: 'items' weight_decay: 0.5 exact_weight_decay: true }"
      "groups { variables: '*' frozen: true }");
  EXPECT_THAT(Updated(tables.Of(0)), ElementsAre(1.9375f, 1.9375f, 0.25f, 0.25f));
  const float decayed = 2 * 0.75f * 0.75f * 0.75f * 0.75f - 0.125f;
  EXPECT_THAT(Updated(tables.Of(1)), ElementsAre(decayed, decayed, decayed));
  EXPECT_THAT(Updated(tables.Of(2)), ElementsAre(2));
  EXPECT_THAT(tables.Of(2).slots(), IsEmpty());
}

TEST(TableOptimizersTest, AGroupOfTablesMayHaveWhatVariablesCannot) {
  const auto config =
      ParseAs<v1::OptimizerConfig>("adam {} groups { variables: 'users' row_wise_adagrad {} }");
  const std::vector<VariableSpec> variables = {{"dense/kernel", Shape({3}), {}}};
  const auto optimizers = VariableOptimizers::Create({config, {}, kTableRate}, variables);
  ASSERT_TRUE(optimizers.ok()) << optimizers.status();
  EXPECT_EQ(optimizers->ScalarState(0).size(), 2u);
}

TEST(TableOptimizersTest, TheJobsAlgorithmMayBeOfRowsWhereEachVariableHasAGroup) {
  const auto rows =
      ParseAs<v1::OptimizerConfig>("row_wise_adagrad {} groups { variables: 'dense/*' sgd {} }");
  std::vector<VariableSpec> variables = {{"dense/kernel", Shape({3}), {}}};
  EXPECT_TRUE(VariableOptimizers::Create({rows, {}, kTableRate}, variables).ok());
  variables.push_back({"conv/kernel", Shape({3}), {}});
  EXPECT_EQ(VariableOptimizers::Create({rows, {}, kTableRate}, variables).status(),
            absl::InvalidArgumentError("optimizer.row_wise_adagrad: expected an algorithm for "
                                       "variables, found one for the rows of tables alone"));
}

TEST(TableOptimizersTest, ErrorsNameTheField) {
  EXPECT_EQ(TryTables("sgd {} groups { variables: 'dense' } groups { variables: '*' "
                      "row_wise_adagrad { epsilon: -1 } }")
                .status(),
            absl::InvalidArgumentError(
                "optimizer.groups[1].row_wise_adagrad.epsilon: expected > 0, found -1"));
  EXPECT_EQ(TryTables("sgd {} groups { variables: 'items' learning_rate_factor: 0 }").status(),
            absl::InvalidArgumentError("optimizer.groups[0].learning_rate: expected > 0, found 0 "
                                       "times that of the others"));
  EXPECT_EQ(
      TryTables("sgd {}", ParseAs<v1::StaleGradientConfig>("delay_compensation {}")).status(),
      absl::InvalidArgumentError(
          "consistency.stale_gradients.delay_compensation: expected none with tables, whose rows "
          "it would need as each worker had them, found some"));
}

}  // namespace
}  // namespace keelson
