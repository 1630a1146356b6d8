// Jobs whose variables have optimizers of their own (optimizer.groups).
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/fresh_directory_testing.h"
#include "core/config/train_config.h"
#include "core/model/spec/model_spec.h"
#include "core/tensor/variable.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

v1::TrainConfig ConfigWith(const std::string& optimizer, float rate) {
  v1::TrainConfig config = SmallConfig(FreshDirectory());
  config.clear_optimizer();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(optimizer, config.mutable_optimizer()));
  config.mutable_learning_rate()->set_base(rate);
  const absl::Status status = FinalizeTrainConfig(&config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

// The variables and slots at the end of a job of one worker, which are the same bits each time.
ModelValues Train(const std::string& optimizer, float rate, int servers) {
  const v1::TrainConfig config = ConfigWith(optimizer, rate);
  LocalCluster cluster({servers, 1, false, config});
  cluster.Start();
  cluster.ExpectDone();
  const auto values =
      ReadModelValues(absl::StrCat(config.checkpoint().model_dir(), "/model.ckpt-48"));
  EXPECT_TRUE(values.ok()) << values.status();
  return *values;
}

std::string InitialValues(size_t variable) {
  const v1::TrainConfig config = SmallConfig(FreshDirectory());
  const ModelSpec model = *InferModelSpec(config.model());
  const VariableSpec& spec = model.variables[variable];
  std::vector<float> values(spec.shape.num_elements());
  FillInitialValues(spec, config.train().seed(), 0, absl::MakeSpan(values));
  return absl::StrCat(spec.shape.ToString(),
                      std::string(reinterpret_cast<const char*>(values.data()), spec.bytes()));
}

// The number of exact zeros among the values at the end of the text.
int64_t Zeros(const std::string& text, int64_t elements) {
  std::vector<float> values(elements);
  std::memcpy(values.data(), text.data() + text.size() - elements * sizeof(float),
              elements * sizeof(float));
  return std::count(values.begin(), values.end(), 0.0f);
}

TEST(GroupsTest, AGroupOfAllVariablesIsTheJobsOptimizer) {
  const ModelValues job = Train("ftrl { l1: 0.02 } clip_global_norm: 1", 0.03125f, 1);
  EXPECT_EQ(Train("sgd {} clip_value: 0.001 clip_global_norm: 1 "
                  "groups { variables: '*' ftrl { l1: 0.02 } learning_rate_factor: 0.25 "
                  "  clip_value: 0 }",
                  0.125f, 2),
            job);
  EXPECT_GT(Zeros(job.at("dense_1/kernel"), 784 * 16), 784 * 16 / 10);
  EXPECT_LT(Zeros(job.at("dense_1/kernel"), 784 * 16), 784 * 16);
}

TEST(GroupsTest, EachVariableIsTrainedByItsGroupOnAnyNumberOfServers) {
  const std::string optimizer =
      "momentum {} clip_global_norm: 5 groups { variables: 'dense_1/*' frozen: true }"
      "groups { variables: '*/kernel' ftrl { l1: 0.1 } learning_rate: 0.5 }";
  const ModelValues one = Train(optimizer, 0.05f, 1);
  EXPECT_EQ(Train(optimizer, 0.05f, 3), one);
  std::vector<std::string> names;
  for (const auto& [name, value] : one) names.push_back(name);
  EXPECT_THAT(names,
              ElementsAre("dense_1/bias", "dense_1/kernel", "dense_2/bias", "dense_2/bias/Momentum",
                          "dense_2/kernel", "dense_2/kernel/Ftrl", "dense_2/kernel/Ftrl_1"));
  EXPECT_EQ(one.at("dense_1/kernel"), InitialValues(0));
  EXPECT_EQ(one.at("dense_1/bias"), InitialValues(1));
  EXPECT_NE(one.at("dense_2/kernel"), InitialValues(2));
  EXPECT_NE(one.at("dense_2/bias"), InitialValues(3));
}

}  // namespace
}  // namespace keelson
