#include "core/stored_model/snapshot_rows.h"

#include <memory>
#include <string>
#include <vector>

#include "core/base/file_system_testing.h"
#include "core/checkpoint/table_testing.h"
#include "core/config/train_config.h"
#include "core/table/initial_rows.h"
#include "core/table/row_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr char kPrefix[] = "/model/model.ckpt-10";

v1::TrainConfig ConfigWith(const std::string& optimizer) {
  return *ParseTrainConfig(
      R"(model {
           features { name: "user" id {} }
           tables { name: "users" dim: 2 }
           layers { name: "vector" inputs: "user" embedding { table: "users" } }
           layers { name: "score" dense { units: 1 } }
           loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" }
         }
         initial_values { groups { variables: "users" normal { stddev: 1 } } }
         learning_rate { base: 0.5 }
         data { generated_clicks {} }
         train { batch_size: 4 max_steps: 20 seed: 5 }
         optimizer { )" +
          optimizer + " }",
      "job");
}

class SnapshotRowsTest : public testing::Test {
 protected:
  SnapshotRowsTest() {
    EXPECT_TRUE(files_.CreateDirectories("/model").ok());
    table_.spec = {"users", 2, {Initializer::Kind::kNormal, 0, 1}};
    table_.seed = 5;
    table_.slots = {{"Adam", 2, 0}, {"Adam_1", 2, 0}};
    table_.rows[7] = {{1, 2}, {{0.5f, -0.5f}, {0.25f, 1}}, 3, 4};
    table_.rows[8] = {{3, 4}, {{1, 1}, {4, 4}}, 9, 2};
    WriteTables(&files_, kPrefix, {table_}, 2);
  }

  absl::StatusOr<std::unique_ptr<SnapshotRows>> Open(const v1::TrainConfig& config) {
    return SnapshotRows::Open(config, *InferModelSpec(config.model()), kPrefix, &files_);
  }
  std::vector<float> Read(const std::string& optimizer, const std::vector<uint64_t>& ids) {
    const auto rows = Open(ConfigWith(optimizer));
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<float> values(ids.size() * 2);
    EXPECT_TRUE((*rows)->ReadRows(0, ids, absl::MakeSpan(values)).ok());
    return values;
  }
  std::vector<float> Initial(uint64_t id) const {
    std::vector<float> row(2);
    InitialRows(table_.spec.initializer, 5, TableSalt("users")).Fill(id, absl::MakeSpan(row));
    return row;
  }

  MemoryFileSystem files_;
  TestTable table_;
};

TEST_F(SnapshotRowsTest, GivesStoredRowsAndTheInitialValuesOfOthers) {
  const std::vector<float> other = Initial(9);
  EXPECT_EQ(Read("sgd {}", {7, 8, 9}), (std::vector<float>{1, 2, 3, 4, other[0], other[1]}));
}

TEST_F(SnapshotRowsTest, MakesUpForTheStepsThatRowsHaveMissed) {
  const v1::TrainConfig config = ConfigWith("adam { exact: true }");
  const auto optimizer = CreateRowOptimizer(config.optimizer(), {}, 2);
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  // Ten steps are done; the last of row 7 was step 3, so it has missed 4 to 9.
  const std::vector<float> row = {1, 2, 0.5f, -0.5f, 0.25f, 1};
  const float* const rows[] = {row.data()};
  const uint32_t missed[] = {6};
  std::vector<float> expected(2);
  RowReadBatch batch;
  batch.rows = rows;
  batch.missed = missed;
  batch.step = 10;
  batch.learning_rate = 0.5f;
  batch.values = expected.data();
  batch.stride = 2;
  (*optimizer)->Read(batch);
  const std::vector<float> found = Read("adam { exact: true }", {7, 8, 9});
  EXPECT_EQ(std::vector<float>(found.begin(), found.begin() + 2), expected);
  EXPECT_NE(found[0], 1) << "it moves on by its average";
  EXPECT_EQ(found[2], 3) << "the last step had it";
  EXPECT_EQ(found[4], Initial(9)[0]);
}

TEST_F(SnapshotRowsTest, ARowThatHasExpiredIsAbsent) {
  v1::TrainConfig config = ConfigWith("sgd {}");
  v1::TableConfig* const table = config.mutable_model()->mutable_tables(0);
  const auto read = [&] {
    const auto rows = Open(config);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<float> values(4);
    EXPECT_TRUE((*rows)->ReadRows(0, {7, 8}, absl::MakeSpan(values)).ok());
    return values;
  };
  // Row 7 has missed six of ten steps.
  table->set_expire_after_steps(7);
  EXPECT_EQ(read(), (std::vector<float>{1, 2, 3, 4}));
  table->set_expire_after_steps(6);
  EXPECT_EQ(read(), (std::vector<float>{Initial(7)[0], Initial(7)[1], 3, 4}));
  table->set_absent(v1::TableConfig::ZEROS);
  EXPECT_EQ(read(), (std::vector<float>{0, 0, 3, 4}));
  *config.mutable_optimizer() = ConfigWith("adam { exact: true }").optimizer();
  EXPECT_EQ(read(), (std::vector<float>{0, 0, 3, 4}));
}

TEST_F(SnapshotRowsTest, AnAbsentRowMayBeZeros) {
  v1::TrainConfig config = ConfigWith("sgd {}");
  config.mutable_model()->mutable_tables(0)->set_absent(v1::TableConfig::ZEROS);
  std::vector<float> values(4);
  EXPECT_TRUE((*Open(config))->ReadRows(0, {8, 9}, absl::MakeSpan(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{3, 4, 0, 0}));
  WriteTables(&files_, kPrefix, {}, 1);
  EXPECT_TRUE((*Open(config))->ReadRows(0, {8, 9}, absl::MakeSpan(values)).ok());
  EXPECT_EQ(values, std::vector<float>(4));
}

TEST_F(SnapshotRowsTest, ASnapshotWithoutTheTableGivesInitialValues) {
  WriteTables(&files_, kPrefix, {}, 1);
  EXPECT_EQ(Read("sgd {}", {7}), Initial(7));
}

TEST_F(SnapshotRowsTest, TellsWhetherAnIdHasARow) {
  const auto rows = Open(ConfigWith("sgd {}"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(*(*rows)->HasRow(0, 7));
  EXPECT_FALSE(*(*rows)->HasRow(0, 6));
  v1::TrainConfig config = ConfigWith("sgd {}");
  config.mutable_model()->mutable_tables(0)->set_expire_after_steps(5);
  const auto expiring = Open(config);
  ASSERT_TRUE(expiring.ok()) << expiring.status();
  // The last step of 7 was 3 of the ten that are done.
  EXPECT_FALSE(*(*expiring)->HasRow(0, 7));
  EXPECT_TRUE(*(*expiring)->HasRow(0, 8));
  WriteTables(&files_, kPrefix, {}, 1);
  const auto none = Open(ConfigWith("sgd {}"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(*(*none)->HasRow(0, 7));
}

TEST_F(SnapshotRowsTest, RefusesATableOfOtherInitialValues) {
  v1::TrainConfig config = ConfigWith("sgd {}");
  config.mutable_train()->set_seed(6);
  EXPECT_THAT(std::string(Open(config).status().message()),
              HasSubstr("table users: seed of the initial values: expected 6, found 5"));
}

TEST_F(SnapshotRowsTest, NeedsTheEndOfTrainingForARateThatDependsOnIt) {
  v1::TrainConfig config = ConfigWith("adam { exact: true }");
  config.mutable_learning_rate()->mutable_cosine();
  config.mutable_train()->clear_max_steps();
  config.mutable_train()->set_epochs(1);
  EXPECT_EQ(Open(config).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
