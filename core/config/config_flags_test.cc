#include "core/config/config_flags.h"

#include <string>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ConfigFlagsTest, AbsentOverridesChangeNothing) {
  v1::TrainConfig config;
  config.mutable_train()->set_epochs(3);
  const std::string before = config.SerializeAsString();
  ApplyOverrides({}, &config);
  EXPECT_EQ(config.SerializeAsString(), before);
}

TEST(ConfigFlagsTest, EveryOverrideHasItsField) {
  ConfigOverrides overrides;
  overrides.batch_size = 32;
  overrides.training_steps = 1000;
  overrides.learning_rate = 0.25;
  overrides.model_dir = "models/a";
  overrides.data_dir = "data/b";
  overrides.seed = 7;
  v1::TrainConfig config;
  config.mutable_train()->set_epochs(3);
  ApplyOverrides(overrides, &config);
  EXPECT_EQ(config.train().batch_size(), 32);
  EXPECT_EQ(config.train().max_steps(), 1000);
  EXPECT_EQ(config.train().epochs(), 0);
  EXPECT_EQ(config.learning_rate().base(), 0.25f);
  EXPECT_EQ(config.checkpoint().model_dir(), "models/a");
  EXPECT_EQ(config.data().data_dir(), "data/b");
  EXPECT_EQ(config.train().seed(), 7u);
}

TEST(ConfigFlagsTest, WithoutAFileTheDefaultIsUsed) {
  ConfigOverrides overrides;
  overrides.training_steps = 20;
  const auto config = ResolveTrainConfig("", overrides);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model().name(), "mnist_mlp");
  EXPECT_EQ(config->train().max_steps(), 20);
  EXPECT_EQ(config->train().epochs(), 0);
  EXPECT_EQ(config->data().generated().train_records(), 20000);
}

TEST(ConfigFlagsTest, AFileIsRead) {
  const auto config = ResolveTrainConfig("configs/mnist_cnn.textproto", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model().name(), "mnist_cnn");
  EXPECT_EQ(ResolveTrainConfig("configs/none.textproto", {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ConfigFlagsTest, OverridesAreChecked) {
  ConfigOverrides overrides;
  overrides.batch_size = -3;
  const auto config = ResolveTrainConfig("", overrides);
  EXPECT_EQ(config.status().message(), "train.batch_size: expected > 0, found -3");
}

}  // namespace
}  // namespace keelson
