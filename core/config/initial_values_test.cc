#include "core/config/initial_values.h"

#include <cmath>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using Kind = Initializer::Kind;

v1::InitialValuesConfig ConfigOf(const std::string& text) {
  v1::InitialValuesConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::vector<VariableSpec> Variables() {
  const Initializer own = {Kind::kUniform, -0.25f, 0.25f};
  return {{"body/kernel", Shape({6, 2}), own},
          {"body/bias", Shape({2}), {}},
          {"conv/kernel", Shape({3, 3, 2, 4}), own},
          {"norm/moving_variance", Shape({4}), {Kind::kConstant, 1, 0}, 0.9f}};
}

// The initializer that the configuration gives the variable.
Initializer Of(const std::string& text, size_t variable) {
  const auto variables = WithInitialValues(ConfigOf(text), Variables());
  EXPECT_TRUE(variables.ok()) << variables.status();
  return variables.ok() ? (*variables)[variable].initializer : Initializer();
}

void ExpectInitializer(const Initializer& found, Kind kind, float a, float b) {
  EXPECT_EQ(found.kind, kind);
  EXPECT_FLOAT_EQ(found.a, a);
  EXPECT_FLOAT_EQ(found.b, b);
}

TEST(WithInitialValuesTest, EachKind) {
  const auto kernel = [](const std::string& kind) {
    return Of("groups { variables: 'body/kernel' " + kind + " }", 0);
  };
  ExpectInitializer(kernel("constant { value: 3 }"), Kind::kConstant, 3, 0);
  ExpectInitializer(kernel("uniform { low: -1 high: 2 }"), Kind::kUniform, -1, 2);
  ExpectInitializer(kernel("normal { mean: 1 stddev: 2 }"), Kind::kNormal, 1, 2);
  ExpectInitializer(kernel("truncated_normal { stddev: 2 }"), Kind::kTruncatedNormal, 0, 2);
  const float glorot = static_cast<float>(std::sqrt(6.0 / 8));
  ExpectInitializer(kernel("glorot_uniform {}"), Kind::kUniform, -glorot, glorot);
  ExpectInitializer(kernel("glorot_normal {}"), Kind::kNormal, 0, 0.5f);
  ExpectInitializer(kernel("he_uniform {}"), Kind::kUniform, -1, 1);
  ExpectInitializer(kernel("he_normal {}"), Kind::kNormal, 0,
                    static_cast<float>(std::sqrt(2.0 / 6)));
}

TEST(WithInitialValuesTest, TheFirstGroupDecides) {
  const std::string text =
      "groups { variables: 'conv/*' he_uniform {} } groups { variables: '*' constant { value: 2 } "
      "}";
  const float limit = static_cast<float>(std::sqrt(6.0 / 18));
  ExpectInitializer(Of(text, 2), Kind::kUniform, -limit, limit);
  for (const size_t other : {0, 1, 3}) ExpectInitializer(Of(text, other), Kind::kConstant, 2, 0);
}

TEST(WithInitialValuesTest, WithoutAGroupNothingChanges) {
  const std::vector<VariableSpec> before = Variables();
  const auto after = WithInitialValues({}, before);
  ASSERT_TRUE(after.ok());
  ASSERT_EQ(after->size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    ExpectInitializer((*after)[i].initializer, before[i].initializer.kind, before[i].initializer.a,
                      before[i].initializer.b);
    EXPECT_EQ((*after)[i].average_decay, before[i].average_decay);
  }
}

TEST(WithInitialValuesTest, WhatAFileNeedNotHaveIsForTheNextGroup) {
  const std::string text =
      "groups { variables: 'body/*' from { path: 'a' missing: INITIALIZE } }"
      "groups { variables: 'body/kernel' constant { value: 2 } }";
  ExpectInitializer(Of(text, 0), Kind::kConstant, 2, 0);
  ExpectInitializer(Of(text, 1), Kind::kConstant, 0, 0);
}

TEST(StoredStartsOfTest, NamesTheFilesAndTensorsOfEachVariable) {
  const auto config = ConfigOf(
      "groups { variables: '*/kernel' from { path: 'a' name: 'old.*.w' missing: INITIALIZE } }"
      "groups { variables: 'conv/*' constant {} }"
      "groups { variables: 'body/*' from { path: 'b' } }");
  const std::vector<StoredStart> starts = StoredStartsOf(config, Variables());
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].variable, 0u);
  ASSERT_EQ(starts[0].origins.size(), 2u);
  EXPECT_EQ(starts[0].origins[0].group, 0u);
  EXPECT_EQ(starts[0].origins[0].path, "a");
  EXPECT_EQ(starts[0].origins[0].tensor, "old.body.w");
  EXPECT_EQ(starts[0].origins[1].group, 2u);
  EXPECT_EQ(starts[0].origins[1].path, "b");
  EXPECT_EQ(starts[0].origins[1].tensor, "body/kernel");
  EXPECT_TRUE(starts[0].required);
  EXPECT_EQ(starts[1].variable, 1u);
  ASSERT_EQ(starts[1].origins.size(), 1u);
  EXPECT_TRUE(starts[1].required);
  EXPECT_EQ(starts[2].variable, 2u);
  ASSERT_EQ(starts[2].origins.size(), 1u);
  EXPECT_EQ(starts[2].origins[0].tensor, "old.conv.w");
  EXPECT_FALSE(starts[2].required) << "the constant follows";
  EXPECT_EQ(FromPath(starts[2].origins[0].group), "initial_values.groups[0].from");
  EXPECT_TRUE(StoredStartsOf({}, Variables()).empty());
}

struct BadGroups {
  const char* text;
  const char* error;
};

TEST(WithInitialValuesTest, RefusesWhatMakesNoSense) {
  const BadGroups all[] = {
      {"groups { constant {} }",
       "initial_values.groups[0].variables: expected a pattern such as \"*\" or \"dense_1/*\", "
       "found \"\""},
      {"groups { variables: '*' }",
       "initial_values.groups[0]: expected one of constant, uniform, normal, truncated_normal, "
       "glorot_uniform, glorot_normal, he_uniform, he_normal and from, found none"},
      {"groups { variables: 'head/*' constant {} }",
       "initial_values.groups[0].variables: expected a pattern that matches a variable, found "
       "\"head/*\""},
      {"groups { variables: '*' constant {} } groups { variables: 'body/*' constant {} }",
       "initial_values.groups[1].variables: expected a pattern that matches a variable of no group "
       "before it, found \"body/*\""},
      {"groups { variables: '*' from {} }",
       "initial_values.groups[0].from.path: expected a snapshot or FILE.safetensors, found \"\""},
      {"groups { variables: 'body/*' from { path: 'a' name: '*/*' } }",
       "initial_values.groups[0].from.name: expected at most 1 \"*\" as in \"body/*\", found "
       "\"*/*\""},
      {"groups { variables: '*' from { path: 'a' missing: 9 } }",
       "initial_values.groups[0].from.missing: expected ERROR or INITIALIZE, found 9"},
      {"groups { variables: '*' from { path: 'a' } } groups { variables: '*' constant {} }",
       "initial_values.groups[1].variables: expected a pattern that matches a variable of no group "
       "before it, found \"*\""},
      {"groups { variables: '*' constant { value: nan } }",
       "initial_values.groups[0].constant.value: expected a finite number, found nan"},
      {"groups { variables: '*' uniform { low: inf } }",
       "initial_values.groups[0].uniform.low: expected a finite number, found inf"},
      {"groups { variables: '*' uniform { high: nan } }",
       "initial_values.groups[0].uniform.high: expected a finite number, found nan"},
      {"groups { variables: '*' uniform { low: -3e38 high: 3e38 } }",
       "initial_values.groups[0].uniform: expected a finite difference of high and low, found an "
       "infinite one"},
      {"groups { variables: '*' uniform { low: 1 high: 1 } }",
       "initial_values.groups[0].uniform.high: expected > 1 (low), found 1"},
      {"groups { variables: '*' normal { mean: -inf stddev: 1 } }",
       "initial_values.groups[0].normal.mean: expected a finite number, found -inf"},
      {"groups { variables: '*' normal {} }",
       "initial_values.groups[0].normal.stddev: expected > 0, found 0"},
      {"groups { variables: '*' truncated_normal { stddev: -1 } }",
       "initial_values.groups[0].truncated_normal.stddev: expected > 0, found -1"},
      {"groups { variables: '*' he_normal {} }",
       "initial_values.groups[0].variables: expected kernels, which have inputs and outputs, for "
       "glorot and he, found body/bias [2]"},
  };
  for (const BadGroups& bad : all) {
    const auto variables = WithInitialValues(ConfigOf(bad.text), Variables());
    EXPECT_EQ(variables.status().code(), absl::StatusCode::kInvalidArgument) << bad.text;
    EXPECT_EQ(variables.status().message(), bad.error) << bad.text;
  }
}

TEST(TablesWithInitialValuesTest, ATableStartsAsTheFirstGroupThatMatchesItsNameSays) {
  const std::vector<TableSpec> tables = {{"users", 4, {}}, {"items", 4, {}}, {"tags", 4, {}}};
  const auto config = ConfigOf(
      "groups { variables: 'users' normal { mean: 1 stddev: 2 } }"
      "groups { variables: '*/kernel' glorot_uniform {} }"
      "groups { variables: '*s' truncated_normal { stddev: 3 } }");
  const auto found = TablesWithInitialValues(config, Variables(), tables);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)[0].initializer.kind, Initializer::Kind::kNormal);
  EXPECT_EQ((*found)[0].initializer.b, 2);
  EXPECT_EQ((*found)[1].initializer.kind, Initializer::Kind::kTruncatedNormal);
  EXPECT_EQ((*found)[2].initializer.b, 3);
  const auto unchanged = TablesWithInitialValues(
      {}, Variables(), {{"users", 4, {Initializer::Kind::kUniform, -1, 1}}});
  ASSERT_TRUE(unchanged.ok()) << unchanged.status();
  EXPECT_EQ((*unchanged)[0].initializer.a, -1);
  // A group that decides for a table alone decides.
  EXPECT_TRUE(
      WithInitialValues(ConfigOf("groups { variables: 'users' constant {} }"), Variables(), tables)
          .ok());
}

TEST(TablesWithInitialValuesTest, ATableHasNoFansAndNoFile) {
  const std::vector<TableSpec> tables = {{"users", 4, {}}};
  const BadGroups all[] = {
      {"groups { variables: 'users' he_normal {} }",
       "initial_values.groups[0]: expected constant, uniform, normal or truncated_normal for the "
       "table \"users\", found he_normal"},
      {"groups { variables: 'u*' glorot_uniform {} }",
       "initial_values.groups[0]: expected constant, uniform, normal or truncated_normal for the "
       "table \"users\", found glorot_uniform"},
      {"groups { variables: '*' from { path: 'a' missing: INITIALIZE } }",
       "initial_values.groups[0]: expected constant, uniform, normal or truncated_normal for the "
       "table \"users\", found from"},
      {"groups { variables: '*' constant {} } groups { variables: 'users' constant {} }",
       "initial_values.groups[1].variables: expected a pattern that matches a variable of no group "
       "before it, found \"users\""},
  };
  for (const BadGroups& bad : all) {
    EXPECT_EQ(WithInitialValues(ConfigOf(bad.text), Variables(), tables).status(),
              absl::InvalidArgumentError(bad.error));
  }
}

}  // namespace
}  // namespace keelson
