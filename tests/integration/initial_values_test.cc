// Jobs whose variables start from what initial_values says.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/fresh_directory_testing.h"
#include "core/config/train_config.h"
#include "core/tensor/variable.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

// The small model, whose last layer is called "head", with a frozen first layer.
v1::TrainConfig FineTuning() {
  v1::TrainConfig config = SmallConfig(FreshDirectory());
  config.mutable_model()->mutable_layers(3)->set_name("head");
  const std::string changes = R"(
      optimizer { groups { variables: 'dense_1/*' frozen: true } }
      initial_values {
        groups { variables: 'head/kernel' truncated_normal { stddev: 0.25 } }
        groups { variables: 'head/bias' constant { value: 0.5 } }
      })";
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(changes, &config));
  const absl::Status status = FinalizeTrainConfig(&config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

ModelValues ValuesAt(const v1::TrainConfig& config, int64_t step) {
  const auto values =
      ReadModelValues(absl::StrCat(config.checkpoint().model_dir(), "/model.ckpt-", step));
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : ModelValues();
}

// As ModelValues has it.
std::string InitialValuesOf(const VariableSpec& spec) {
  std::vector<float> values(spec.shape.num_elements());
  FillInitialValues(spec, /*seed=*/7, 0, absl::MakeSpan(values));
  return absl::StrCat(
      spec.shape.ToString(),
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

TEST(InitialValuesTest, GroupsDecideOnAnyNumberOfServers) {
  std::vector<ModelValues> ends;
  for (const int servers : {1, 3}) {
    const v1::TrainConfig config = FineTuning();
    LocalCluster cluster({servers, 1, false, config});
    cluster.Start();
    cluster.ExpectDone();
    const ModelValues begin = ValuesAt(config, 0);
    EXPECT_EQ(
        begin.at("head/kernel"),
        InitialValuesOf(
            {"head/kernel", Shape({16, 10}), {Initializer::Kind::kTruncatedNormal, 0, 0.25f}}));
    EXPECT_EQ(begin.at("head/bias"),
              InitialValuesOf({"", Shape({10}), {Initializer::Kind::kConstant, 0.5f, 0}}));
    EXPECT_EQ(begin.at("head/kernel/Momentum"), InitialValuesOf({"", Shape({16, 10}), {}}));
    ends.push_back(ValuesAt(config, 48));
    EXPECT_EQ(ends.back().at("dense_1/kernel"), begin.at("dense_1/kernel"));
    EXPECT_NE(ends.back().at("head/bias"), begin.at("head/bias"));
  }
  EXPECT_EQ(ends[0], ends[1]) << "whatever the number of servers";
}

}  // namespace
}  // namespace keelson
