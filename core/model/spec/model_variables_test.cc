#include "core/model/spec/model_variables.h"

#include <gmock/gmock.h>

#include <string>

#include "core/model/spec/model_config_testing.h"
#include "core/model/spec/model_spec.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<ModelVariables> InferFrom(const std::string& text) {
  return InferVariables(ParseModel(text));
}

std::string VariablesError(const std::string& text) {
  const absl::Status status = InferFrom(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ModelVariablesTest, ExternalOnesAreAsTheConfigurationHasThem) {
  const auto model = InferFrom(
      "external { variables { name: '0.weight' shape: [16, 1, 3, 3] } variables { name: 'scale' } "
      "variables { name: '1.running_mean' shape: 16 average_decay: 0.75 } }");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->variables.size(), 3u);
  EXPECT_EQ(model->variables[0].name, "0.weight");
  EXPECT_EQ(model->variables[0].shape, Shape({16, 1, 3, 3}));
  EXPECT_TRUE(model->variables[0].trained());
  EXPECT_EQ(model->variables[0].initializer, Initializer());
  EXPECT_EQ(model->variables[1].shape.num_elements(), 1);
  EXPECT_EQ(model->variables[2].average_decay, 0.75f);
  EXPECT_TRUE(model->tables.empty());
}

TEST(ModelVariablesTest, OfLayersTheyAreTheLayers) {
  const auto model = InferFrom(
      "input_shape: 4 layers { name: 'top' dense { units: 3 } } loss { kind: "
      "SOFTMAX_CROSS_ENTROPY }");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->variables.size(), 2u);
  EXPECT_EQ(model->variables[0].name, "top/kernel");
}

TEST(ModelVariablesTest, SaysWhichFieldIsWrong) {
  const auto variables = [](const std::string& text) {
    return VariablesError("external { variables { name: 'w' shape: 2 } " + text + " }");
  };
  EXPECT_EQ(variables("variables { shape: 2 }"),
            "model.external.variables[1].name: expected a name without \"/\", \"*\" and control "
            "characters, found \"\"");
  EXPECT_THAT(variables("variables { name: 'a/b' }"), HasSubstr("found \"a/b\""));
  EXPECT_THAT(variables("variables { name: 'a*' }"), HasSubstr("found \"a*\""));
  EXPECT_THAT(variables("variables { name: 'a\\n' }"), HasSubstr("found \"a\\n\""));
  EXPECT_EQ(variables("variables { name: 'w' }"),
            "model.external.variables[1].name: another variable is already called \"w\"");
  EXPECT_EQ(variables("variables { name: 'v' shape: [3, 0] }"),
            "model.external.variables[1].shape[1]: expected > 0, found 0");
  EXPECT_THAT(variables("variables { name: 'v' shape: [65536, 65536] }"),
              HasSubstr("model.external.variables[1].shape: "));
  EXPECT_EQ(variables("variables { name: 'v' average_decay: 1 }"),
            "model.external.variables[1].average_decay: expected in [0, 1), found 1");
}

TEST(ModelVariablesTest, AnExternalModelStandsAloneAndTrains) {
  EXPECT_EQ(VariablesError("external { variables { name: 'mean' average_decay: 0.5 } }"),
            "model.external.variables: expected a variable to train, found none");
  EXPECT_EQ(VariablesError("input_shape: 3 external { variables { name: 'w' } }"),
            "model.external: expected neither layers, features nor losses beside it, found some");
}

TEST(ModelVariablesTest, AnExternalModelMayHaveTables) {
  const auto model = InferFrom(
      "external { variables { name: 'w' } } tables { name: 'users' dim: 4 admit_after: 3 } "
      "tables { name: 'items' dim: 8 }");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->tables.size(), 2u);
  EXPECT_EQ(model->tables[0].name, "users");
  EXPECT_EQ(model->tables[0].admit_after, 3);
  EXPECT_EQ(model->tables[1].dim, 8);
  EXPECT_TRUE(InferFrom("external {} tables { name: 'users' dim: 4 }").ok());
}

TEST(ModelVariablesTest, TablesOfAnExternalModelAreNamedByTheirFields) {
  EXPECT_EQ(VariablesError("external { variables { name: 'w' } } tables { name: 'users' }"),
            "model.tables[0].dim: expected 1 to 1024, found 0");
  EXPECT_EQ(VariablesError("external { variables { name: 'w' } } tables { name: 'w' dim: 4 }"),
            "model.tables[0].name: a variable is already called \"w\"");
}

TEST(ModelVariablesTest, AnExternalModelHasNoLayers) {
  const absl::Status status =
      InferModelSpec(ParseModel("external { variables { name: 'w' shape: 2 } }")).status();
  EXPECT_EQ(status, absl::InvalidArgumentError(
                        "model.external: expected a model of layers, found a script's variables"));
}

}  // namespace
}  // namespace keelson
