#include "dashboard/api/model_predictor.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/base/fresh_directory_testing.h"
#include "testing/tiny_model.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class ModelPredictorTest : public testing::Test {
 protected:
  absl::StatusOr<Prediction> Predict(std::vector<float> features) {
    return predictor_.Predict(config_.model(), features);
  }

  const std::string model_dir_ = FreshDirectory();
  const v1::TrainConfig config_ = TinyConfig(model_dir_);
  CheckpointDirectory directory_{FileSystem::Real(), model_dir_, Clock::Real()};
  ModelPredictor predictor_{model_dir_, /*threads=*/1, Clock::Real()};
};

TEST_F(ModelPredictorTest, AnswersWithTheNewestSnapshot) {
  EXPECT_EQ(Predict({1, 0}).status(),
            absl::NotFoundError("there is no snapshot yet that can be read"));
  CommitTinySnapshot(&directory_, 100, 0);
  auto prediction = Predict({1, 0});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step, 100);
  EXPECT_THAT(prediction->outputs, ElementsAre(0.5f, 0.5f));
  CommitTinySnapshot(&directory_, 200, 2);
  prediction = Predict({1, 0});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step, 200);
  const auto expected = static_cast<float>(1 / (1 + std::exp(-2.0)));
  EXPECT_THAT(prediction->outputs,
              ElementsAre(FloatNear(expected, 1e-6f), FloatNear(1 - expected, 1e-6f)));
}

TEST_F(ModelPredictorTest, PassesOverSnapshotsThatCannotBeRead) {
  CommitTinySnapshot(&directory_, 100, 1);
  CommitTinySnapshot(&directory_, 200, 2);
  DamageSnapshot(directory_.SnapshotPrefix(200));
  auto prediction = Predict({1, 0});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step, 100);
  CommitTinySnapshot(&directory_, 300, 2);
  prediction = Predict({1, 0});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step, 300);
}

TEST_F(ModelPredictorTest, WhenNoneCanBeRead) {
  CommitTinySnapshot(&directory_, 100, 1);
  DamageSnapshot(directory_.SnapshotPrefix(100));
  const absl::Status status = Predict({1, 0}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.ckpt-100"));
}

TEST_F(ModelPredictorTest, ASnapshotOfAnotherModel) {
  CommitTinySnapshot(&directory_, 100, 1);
  v1::ModelConfig other = config_.model();
  other.mutable_layers(0)->mutable_dense()->set_units(3);
  const absl::Status status = predictor_.Predict(other, {1, 0}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'scores/kernel': the model expects [2, 3]"));
  EXPECT_TRUE(Predict({1, 0}).ok());
}

TEST_F(ModelPredictorTest, FeaturesThatMakeNoSense) {
  CommitTinySnapshot(&directory_, 100, 1);
  EXPECT_EQ(Predict({1}).status(),
            absl::InvalidArgumentError("features: expected 2 numbers for [2], found 1"));
  EXPECT_EQ(Predict({1, 0, 0}).status(),
            absl::InvalidArgumentError("features: expected 2 numbers for [2], found 3"));
  EXPECT_EQ(Predict({0, std::numeric_limits<float>::infinity()}).status(),
            absl::InvalidArgumentError("features[1]: expected a finite number, found inf"));
  EXPECT_TRUE(absl::IsInvalidArgument(predictor_.Predict(v1::ModelConfig(), {1, 0}).status()));
  v1::ModelConfig of_ids;
  v1::Feature* const user = of_ids.add_features();
  user->set_name("user");
  user->mutable_id();
  v1::Embedding* const embedding = of_ids.add_layers()->mutable_embedding();
  embedding->set_rows(3);
  embedding->set_dim(1);
  of_ids.mutable_loss()->set_kind(v1::LossConfig::SIGMOID_CROSS_ENTROPY);
  EXPECT_EQ(predictor_.Predict(of_ids, {1, 0}).status(),
            absl::UnimplementedError(
                "features: expected a model that takes one of numbers, found user (id of 3)"));
}

}  // namespace
}  // namespace keelson
