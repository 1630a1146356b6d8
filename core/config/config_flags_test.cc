#include "core/config/config_flags.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ConfigFlagsTest, AbsentOverridesChangeNothing) {
  v1::TrainConfig config;
  config.mutable_train()->set_epochs(3);
  const std::string before = config.SerializeAsString();
  EXPECT_TRUE(ApplyOverrides({}, &config).ok());
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
  overrides.wire = "float16";
  overrides.pipeline_depth = 2;
  v1::TrainConfig config;
  config.mutable_train()->set_epochs(3);
  EXPECT_TRUE(ApplyOverrides(overrides, &config).ok());
  EXPECT_EQ(config.train().batch_size(), 32);
  EXPECT_EQ(config.train().max_steps(), 1000);
  EXPECT_EQ(config.train().epochs(), 0);
  EXPECT_EQ(config.learning_rate().base(), 0.25f);
  EXPECT_EQ(config.checkpoint().model_dir(), "models/a");
  EXPECT_EQ(config.data().data_dir(), "data/b");
  EXPECT_EQ(config.train().seed(), 7u);
  EXPECT_EQ(config.transfer().groups_size(), 1);
  EXPECT_EQ(config.transfer().depth(), 2);
}

TEST(ConfigFlagsTest, EpochsComeInPlaceOfSteps) {
  ConfigOverrides overrides;
  overrides.epochs = 4;
  v1::TrainConfig config;
  config.mutable_train()->set_max_steps(1000);
  EXPECT_TRUE(ApplyOverrides(overrides, &config).ok());
  EXPECT_EQ(config.train().epochs(), 4);
  EXPECT_EQ(config.train().max_steps(), 0);
  overrides.training_steps = 10;
  EXPECT_EQ(ApplyOverrides(overrides, &config),
            absl::InvalidArgumentError("--epochs: expected none beside --training_steps, found 4"));
}

TEST(ConfigFlagsTest, AJobHasAStepAtLeast) {
  v1::TrainConfig config;
  ConfigOverrides steps;
  steps.training_steps = 0;
  EXPECT_EQ(ApplyOverrides(steps, &config),
            absl::InvalidArgumentError("--training_steps: expected at least 1, found 0"));
  ConfigOverrides epochs;
  epochs.epochs = -2;
  EXPECT_EQ(ApplyOverrides(epochs, &config),
            absl::InvalidArgumentError("--epochs: expected at least 1, found -2"));
}

TEST(ConfigFlagsTest, OfAScriptsJobTheDirectoryAloneIsSaid) {
  ConfigOverrides overrides;
  overrides.model_dir = "models/a";
  v1::TrainConfig config;
  ASSERT_TRUE(ApplyToScriptConfig(overrides, &config).ok());
  EXPECT_EQ(config.checkpoint().model_dir(), "models/a");
  overrides.seed = 7;
  EXPECT_EQ(ApplyToScriptConfig(overrides, &config),
            absl::InvalidArgumentError(
                "--seed: expected none with --config=script, whose script says it"));
}

TEST(ConfigFlagsTest, WireReplacesTheGroupsByOneForAllVariables) {
  struct Case {
    std::string wire;
    v1::WireFormat push, pull;
  };
  const std::vector<Case> cases = {{"float32", v1::FLOAT32, v1::FLOAT32},
                                   {"float16", v1::FLOAT16, v1::FLOAT16},
                                   {"bfloat16", v1::BFLOAT16, v1::BFLOAT16},
                                   {"int8", v1::INT8, v1::BFLOAT16},
                                   {"top_k", v1::TOP_K, v1::BFLOAT16}};
  std::vector<std::string> names;
  for (const Case& c : cases) {
    names.push_back(c.wire);
    ConfigOverrides overrides;
    overrides.wire = c.wire;
    v1::TrainConfig config;
    config.mutable_transfer()->add_groups()->set_variables("a");
    config.mutable_transfer()->add_groups()->set_variables("b");
    ASSERT_TRUE(ApplyOverrides(overrides, &config).ok());
    ASSERT_EQ(config.transfer().groups_size(), 1) << c.wire;
    EXPECT_EQ(config.transfer().groups(0).variables(), "*");
    EXPECT_EQ(config.transfer().groups(0).push(), c.push) << c.wire;
    EXPECT_EQ(config.transfer().groups(0).pull(), c.pull) << c.wire;
  }
  EXPECT_EQ(WireNames(), names);
}

TEST(ConfigFlagsTest, AnUnknownWireIsRefused) {
  for (const std::string wire : {"float64", "FLOAT16", ""}) {
    ConfigOverrides overrides;
    overrides.wire = wire;
    const absl::Status status = ResolveTrainConfig("", overrides).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "--wire: expected one of float32, float16, bfloat16, int8, top_k, found " +
                  (wire.empty() ? "\"\"" : wire));
  }
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
  overrides = {};
  overrides.pipeline_depth = 3;
  EXPECT_EQ(ResolveTrainConfig("", overrides).status().message(),
            "transfer.depth: expected 1 or 2, found 3");
}

}  // namespace
}  // namespace keelson
