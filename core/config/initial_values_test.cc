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
       "glorot_uniform, glorot_normal, he_uniform and he_normal, found none"},
      {"groups { variables: 'head/*' constant {} }",
       "initial_values.groups[0].variables: expected a pattern that matches a variable, found "
       "\"head/*\""},
      {"groups { variables: '*' constant {} } groups { variables: 'body/*' constant {} }",
       "initial_values.groups[1].variables: expected a pattern that matches a variable of no group "
       "before it, found \"body/*\""},
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

}  // namespace
}  // namespace keelson
