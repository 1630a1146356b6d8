#include "core/stored_model/stored_model.h"

#include <memory>
#include <string>
#include <vector>

#include "core/base/file_system_testing.h"
#include "core/checkpoint/table_testing.h"
#include "core/config/train_config.h"
#include "core/device/factory/device_factory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

// The score of a record is the number of its user's row.
v1::TrainConfig ConfigOf(const std::string& more_layers = "") {
  return *ParseTrainConfig(
      R"(model {
           features { name: "user" id {} }
           tables { name: "users" dim: 1 }
           layers { name: "score" inputs: "user" embedding { table: "users" } } )" +
          more_layers + R"(
           loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" }
         }
         initial_values { groups { variables: "users" constant { value: 1 } } }
         learning_rate { base: 0.5 }
         optimizer { sgd {} }
         train { batch_size: 4 max_steps: 20 seed: 5 })",
      "job");
}

class StoredModelTest : public testing::Test {
 protected:
  StoredModelTest() {
    EXPECT_TRUE(files_.CreateDirectories("/model").ok());
    Write("/model/model.ckpt-1", 2);
    Write("/model/model.ckpt-2", -2);
  }
  // A snapshot in which user 7 has this number.
  void Write(const std::string& prefix, float number) {
    TestTable table;
    table.spec = {"users", 1, {Initializer::Kind::kConstant, 1, 0}};
    table.seed = 5;
    table.rows[7] = {{number}, {}, 1, 1};
    WriteTables(&files_, prefix, {table}, 1);
  }
  std::unique_ptr<StoredModel> Create(const v1::TrainConfig& config) {
    auto model = StoredModel::Create(config, device_.get());
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
  static Batch UsersOf(std::vector<uint64_t> ids) {
    Batch batch;
    batch.features.resize(1);
    batch.features[0].ids = std::move(ids);
    return batch;
  }

  MemoryFileSystem files_;
  const std::unique_ptr<Device> device_ = *CreateDevice("cpu", {.threads = 1});
};

TEST_F(StoredModelTest, PredictsWithTheRowsOfTheSnapshot) {
  const auto model = Create(ConfigOf());
  Batch batch = UsersOf({7, 8, 7});
  std::vector<float> outputs;
  ASSERT_EQ(model->Load("/model/model.ckpt-1", &files_), absl::OkStatus());
  ASSERT_EQ(model->Predict(&batch, &outputs), absl::OkStatus());
  EXPECT_THAT(outputs, ElementsAre(FloatNear(0.880797f, 1e-6f), FloatNear(0.731059f, 1e-6f),
                                   FloatNear(0.880797f, 1e-6f)));
  ASSERT_EQ(model->Load("/model/model.ckpt-2", &files_), absl::OkStatus());
  batch = UsersOf({7});
  ASSERT_EQ(model->Predict(&batch, &outputs), absl::OkStatus());
  EXPECT_THAT(outputs, ElementsAre(FloatNear(0.119203f, 1e-6f)));
}

TEST_F(StoredModelTest, KeepsItsValuesWhenASnapshotIsNotTheModels) {
  const auto model = Create(ConfigOf());
  ASSERT_EQ(model->Load("/model/model.ckpt-1", &files_), absl::OkStatus());
  EXPECT_EQ(model->Load("/model/model.ckpt-9", &files_).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(model->spoilt());
  Batch batch = UsersOf({7});
  std::vector<float> outputs;
  ASSERT_EQ(model->Predict(&batch, &outputs), absl::OkStatus());
  EXPECT_THAT(outputs, ElementsAre(FloatNear(0.880797f, 1e-6f)));
}

TEST_F(StoredModelTest, ASnapshotWithoutAVariable) {
  const auto model = Create(ConfigOf("layers { dense { units: 1 } }"));
  const absl::Status status = model->Load("/model/model.ckpt-1", &files_);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dense_1/kernel"));
}

TEST_F(StoredModelTest, ABatchThatIsNotTheModels) {
  const auto model = Create(ConfigOf());
  ASSERT_EQ(model->Load("/model/model.ckpt-1", &files_), absl::OkStatus());
  Batch batch;
  std::vector<float> outputs;
  EXPECT_EQ(model->Predict(&batch, &outputs).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
