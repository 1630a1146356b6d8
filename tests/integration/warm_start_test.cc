// Jobs whose variables start from what another model was trained to.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/fresh_directory_testing.h"
#include "core/config/train_config.h"
#include "core/tensor/variable.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// docs/models.md has this configuration: a new head on the first layer of a trained model.
constexpr char kFineTuning[] = R"(
  optimizer { groups { variables: "trunk/*" frozen: true } }
  initial_values {
    groups { variables: "trunk/*" from { path: "$FILE" name: "$PREFIX*" } }
    groups { variables: "head/kernel" truncated_normal { stddev: 0.02 } }
  })";

v1::TrainConfig FineTuning(const std::string& file, const std::string& prefix) {
  v1::TrainConfig config = SmallConfig(FreshDirectory());
  config.mutable_model()->mutable_layers(1)->set_name("trunk");
  config.mutable_model()->mutable_layers(3)->set_name("head");
  std::string text = kFineTuning;
  text.replace(text.find("$FILE"), 5, file);
  text.replace(text.find("$PREFIX"), 7, prefix);
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(text, &config));
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

// A model of another job: its directory.
std::string Trained() {
  const v1::TrainConfig config = SmallConfig(FreshDirectory());
  LocalCluster cluster({1, 1, false, config});
  cluster.Start();
  cluster.ExpectDone();
  return config.checkpoint().model_dir();
}

// As ModelValues has it.
std::string TextOf(const Shape& shape, const std::vector<float>& values) {
  return absl::StrCat(shape.ToString(), std::string(reinterpret_cast<const char*>(values.data()),
                                                    values.size() * sizeof(float)));
}

TEST(WarmStartJobTest, AHeadIsTrainedOnTheFrozenTrunkOfAnotherJob) {
  const std::string trained = Trained();
  const auto source = ReadModelValues(trained + "/model.ckpt-48");
  ASSERT_TRUE(source.ok()) << source.status();
  std::vector<ModelValues> ends;
  for (const int servers : {1, 2}) {
    const v1::TrainConfig config = FineTuning(trained, "dense_1/");
    LocalCluster cluster({servers, 1, false, config});
    cluster.Start();
    cluster.ExpectDone();
    const ModelValues begin = ValuesAt(config, 0);
    ends.push_back(ValuesAt(config, 48));
    for (const char* name : {"kernel", "bias"}) {
      const std::string& value = source->at(absl::StrCat("dense_1/", name));
      EXPECT_EQ(begin.at(absl::StrCat("trunk/", name)), value) << name;
      EXPECT_EQ(ends.back().at(absl::StrCat("trunk/", name)), value) << name;
      EXPECT_NE(ends.back().at(absl::StrCat("head/", name)), begin.at(absl::StrCat("head/", name)));
    }
    std::vector<float> head(160);
    FillInitialValues(
        {"head/kernel", Shape({16, 10}), {Initializer::Kind::kTruncatedNormal, 0, 0.02f}},
        /*seed=*/7, 0, absl::MakeSpan(head));
    EXPECT_EQ(begin.at("head/kernel"), TextOf(Shape({16, 10}), head));
  }
  EXPECT_EQ(ends[0], ends[1]) << "whatever the number of servers";
}

// The head is trained further, so its slots have to start as they always do.
TEST(WarmStartJobTest, HalfPrecisionOfSafetensorsIsTrainedOnTwoServers) {
  MemoryTensors tensors;
  const std::vector<uint16_t> halves(784 * 16, 0x2e66);  // 0.0999755859375
  tensors.AddValues("encoder.kernel", BundleDtype::kFloat16, Shape({784, 16}), halves);
  tensors.AddValues("encoder.bias", BundleDtype::kFloat16, Shape({16}),
                    std::vector<uint16_t>(16, 0x3c00));
  const std::string file = FreshDirectory() + "/encoder.safetensors";
  ASSERT_EQ(WriteSafetensors(file, tensors.List(), {}, &tensors), absl::OkStatus());
  v1::TrainConfig config = FineTuning(file, "encoder.");
  config.mutable_optimizer()->clear_groups();
  LocalCluster cluster({2, 1, false, config});
  cluster.Start();
  cluster.ExpectDone();
  const ModelValues begin = ValuesAt(config, 0);
  EXPECT_EQ(begin.at("trunk/kernel"),
            TextOf(Shape({784, 16}), std::vector<float>(784 * 16, 0.0999755859375f)));
  EXPECT_EQ(begin.at("trunk/bias"), TextOf(Shape({16}), std::vector<float>(16, 1)));
  EXPECT_EQ(begin.at("trunk/kernel/Momentum"),
            TextOf(Shape({784, 16}), std::vector<float>(784 * 16, 0)));
  EXPECT_NE(ValuesAt(config, 48).at("trunk/kernel"), begin.at("trunk/kernel"));
}

TEST(WarmStartJobTest, ARestartedJobNeedsNoFile) {
  const std::string trained = Trained();
  v1::TrainConfig config = FineTuning(trained, "dense_1/");
  config.mutable_train()->set_max_steps(200);
  LocalCluster cluster({2, 1, false, config});
  cluster.Start();
  cluster.WaitForSnapshot(16);
  cluster.KillWorker(0);
  cluster.KillChief();
  for (const int server : {0, 1}) cluster.KillServer(server);
  std::filesystem::remove_all(trained);
  for (const int server : {0, 1}) cluster.StartServer(server);
  cluster.StartChief();
  cluster.StartWorker(0);
  cluster.ExpectDone();
  EXPECT_EQ(ValuesAt(config, 200).at("trunk/kernel"), ValuesAt(config, 0).at("trunk/kernel"));
}

TEST(WarmStartJobTest, AFileThatCannotBeUsedEndsTheJobBeforeItBegins) {
  const v1::TrainConfig config = FineTuning("/absent/model.ckpt-1", "");
  LocalCluster cluster({2, 1, false, config});
  cluster.StartServer(0);
  cluster.StartServer(1);
  cluster.StartChief();
  const absl::Status status = cluster.WaitForChief();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << "exit code 2";
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("initial_values.groups[0].from: expected a snapshot or FILE.safetensors, "
                        "found /absent/model.ckpt-1"));
  for (const int server : {0, 1}) {
    EXPECT_EQ(cluster.ShardStatus(server).state(), v1::ShardStatus::EMPTY);
  }
}

}  // namespace
}  // namespace keelson
