#include "core/config/config_difference.h"

#include "absl/strings/str_cat.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::TrainConfig Default() {
  v1::TrainConfig config = *ParseTrainConfig(DefaultTrainConfigText(), "default");
  EXPECT_TRUE(FinalizeTrainConfig(&config).ok());
  return config;
}

std::vector<std::string> Differences(const v1::TrainConfig& found) {
  std::vector<std::string> lines;
  for (const SettingDifference& difference : ConfigDifference(Default(), found)) {
    lines.push_back(difference.ToString());
  }
  return lines;
}

TEST(ConfigDifferenceTest, EqualConfigurationsHaveNone) {
  v1::TrainConfig config = Default();
  EXPECT_THAT(Differences(config), IsEmpty());
  config.mutable_data()->set_data_dir("/elsewhere");
  config.mutable_checkpoint()->set_model_dir("/elsewhere");
  EXPECT_THAT(Differences(config), IsEmpty());
}

TEST(ConfigDifferenceTest, NamesEachSettingWithBothValues) {
  v1::TrainConfig config = Default();
  const int64_t batch = config.train().batch_size();
  config.mutable_train()->set_batch_size(batch + 1);
  config.mutable_learning_rate()->set_base(0.5);
  EXPECT_THAT(
      Differences(config),
      ElementsAre("learning_rate.base: expected " + absl::StrCat(Default().learning_rate().base()) +
                      ", found 0.5",
                  absl::StrCat("train.batch_size: expected ", batch, ", found ", batch + 1)));
}

TEST(ConfigDifferenceTest, NamesPlacesInListsAndWhatOneHasNot) {
  v1::TrainConfig config = Default();
  const int last = config.model().layers_size();
  config.mutable_model()->mutable_layers(0)->set_name("other");
  config.mutable_model()->add_layers()->mutable_relu();
  const std::vector<std::string> lines = Differences(config);
  EXPECT_THAT(
      lines,
      ElementsAre(absl::StrCat("model.layers[0].name: expected \"",
                               Default().model().layers(0).name(), "\", found \"other\""),
                  absl::StrCat("model.layers[", last, "]: expected none, found { relu { } }")));
}

TEST(ConfigDifferenceTest, NamesAnotherKind) {
  v1::TrainConfig expected;
  expected.mutable_optimizer()->mutable_sgd();
  v1::TrainConfig found;
  found.mutable_optimizer()->mutable_momentum()->set_momentum(0.5);
  const std::vector<SettingDifference> differences = ConfigDifference(expected, found);
  ASSERT_THAT(differences, testing::SizeIs(2));
  EXPECT_EQ(differences[0].ToString(), "optimizer.sgd: expected {}, found none");
  EXPECT_EQ(differences[1].ToString(),
            "optimizer.momentum: expected none, found { momentum: 0.5 }");
}

}  // namespace
}  // namespace keelson
