#include "cli/initial_values_text.h"

#include "absl/strings/str_cat.h"
#include "core/base/fresh_directory_testing.h"
#include "core/tensor_files/snapshot_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

std::string TableOf(const std::string& groups, const std::vector<TableSpec>& tables = {}) {
  v1::TrainConfig config;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString("initial_values { " + groups + " }", &config));
  ModelSpec model;
  model.variables = {{"dense/kernel", Shape({4, 3}), {Initializer::Kind::kUniform, -0.5f, 0.5f}},
                     {"dense/bias", Shape({3}), {}}};
  model.tables = tables;
  const auto table = InitialValuesTable(config, model);
  return table.ok() ? *table : std::string(table.status().message());
}

TEST(InitialValuesTextTest, NamesDistributions) {
  EXPECT_EQ(TableOf("groups { variables: '*/bias' normal { mean: 1 stddev: 2 } }"),
            "variable      shape   initial values\n"
            "dense/kernel  [4, 3]  uniform in [-0.5, 0.5)\n"
            "dense/bias    [3]     normal, mean 1, deviation 2\n");
  EXPECT_THAT(TableOf("groups { variables: 'head' constant {} }"),
              HasSubstr("initial_values.groups[0].variables: expected a pattern that matches"));
}

TEST(InitialValuesTextTest, TablesHaveAnyRows) {
  EXPECT_EQ(TableOf("groups { variables: 'users' constant { value: 2 } }", {{"users", 8, {}}}),
            "variable      shape     initial values\n"
            "dense/kernel  [4, 3]    uniform in [-0.5, 0.5)\n"
            "dense/bias    [3]       constant 0\n"
            "users         [any, 8]  constant 2\n");
}

TEST(InitialValuesTextTest, NamesTensorsOfFiles) {
  const std::string directory = FreshDirectory();
  WriteTestSnapshot(directory, 40);
  EXPECT_EQ(TableOf("groups { variables: '*/kernel' from { path: '" + directory + "' } }"),
            absl::StrCat("variable      shape   initial values\n"
                         "dense/kernel  [4, 3]  ",
                         directory,
                         "/model.ckpt-40: dense/kernel\n"
                         "dense/bias    [3]     constant 0\n"
                         "\n"
                         "initial values: 1 of 2 variables from files; otherwise 1 (dense/bias); ",
                         directory, "/model.ckpt-40: 1 taken, 1 (dense/bias) not\n"));
}

TEST(InitialValuesTextTest, SaysWhereAJobWouldLook) {
  EXPECT_THAT(
      TableOf("groups { variables: '*' from { path: '/absent' name: 'net/*' missing: "
              "INITIALIZE } } groups { variables: '*/bias' from { path: '/b' } }"),
      HasSubstr("dense/kernel  [4, 3]  /absent: net/dense/kernel, or uniform in [-0.5, 0.5)\n"
                "dense/bias    [3]     /absent: net/dense/bias, or /b: dense/bias\n"
                "\n"
                "initial_values.groups[0].from: expected a snapshot"));
}

}  // namespace
}  // namespace keelson
