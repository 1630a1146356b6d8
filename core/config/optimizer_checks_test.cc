#include "core/config/optimizer_checks.h"

#include <google/protobuf/text_format.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

// With a variable "dense/kernel" and tables "users" and "items".
absl::Status CheckWithTables(const std::string& text) {
  v1::OptimizerConfig optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &optimizer)) << text;
  const std::vector<VariableSpec> variables = {{"dense/kernel", Shape({3}), {}}};
  const std::vector<TableSpec> tables = {{"users", 8, {}}, {"items", 8, {}}};
  return CheckOptimizer(optimizer, {variables, tables});
}

TEST(CheckOptimizerTest, GroupsDecideForTablesByName) {
  for (const char* good : {
           "sgd {} groups { variables: 'users' row_wise_adagrad { epsilon: 1 } }",
           "row_wise_adagrad { epsilon: 1 } groups { variables: 'dense/*' sgd {} }",
           "sgd {} groups { variables: 'dense/*' frozen: true }",
           "sgd {} groups { variables: 'u*' sgd {} } groups { variables: '*s' momentum {} }",
           "sgd {} groups { variables: 'i*' weight_decay: 0.1 exact_weight_decay: true }",
       }) {
    EXPECT_EQ(CheckWithTables(good), absl::OkStatus()) << good;
  }
}

TEST(CheckOptimizerTest, AGroupThatDecidesForNoTableIsAnError) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"sgd {} groups { variables: 'user' }",
       "optimizer.groups[0].variables: expected a pattern that matches a variable or table, found "
       "\"user\""},
      {"sgd {} groups { variables: 'u*' } groups { variables: 'users' }",
       "optimizer.groups[1].variables: expected a pattern that matches a variable or table of no "
       "group before it, found \"users\""},
      {"sgd {} groups { variables: '*' frozen: true }",
       "optimizer.groups: expected a variable that is not frozen, found none"},
      {"row_wise_adagrad { epsilon: 1 }",
       "optimizer.row_wise_adagrad: expected an algorithm for variables, found one for the rows of "
       "tables alone, and dense/kernel"},
  };
  for (const auto& [config, error] : kErrors) {
    EXPECT_EQ(CheckWithTables(config), absl::InvalidArgumentError(error)) << config;
  }
}

}  // namespace
}  // namespace keelson
