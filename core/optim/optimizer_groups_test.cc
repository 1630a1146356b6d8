#include "core/optim/optimizer_groups.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/optim/optim_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr float kBaseRate = 0.5f;

const std::vector<VariableSpec>& Variables() {
  static const auto* const variables = new std::vector<VariableSpec>{
      {"wide/kernel", Shape({3}), {}},
      {"deep/kernel", Shape({3}), {}},
      {"deep/bias", Shape({3}), {}},
      {"norm/moving_mean", Shape({3}), {}, 0.5f},
  };
  return *variables;
}

absl::StatusOr<VariableOptimizers> TryCreate(const std::string& optimizer) {
  return VariableOptimizers::Create({ParseAs<v1::OptimizerConfig>(optimizer), {}, kBaseRate},
                                    Variables());
}

VariableOptimizers Optimizers(const std::string& optimizer) {
  absl::StatusOr<VariableOptimizers> optimizers = TryCreate(optimizer);
  EXPECT_TRUE(optimizers.ok()) << optimizers.status();
  return *std::move(optimizers);
}

// Values and slots after a few updates of fixed gradients at the base rate.
std::vector<std::vector<float>> Trained(const Optimizer& optimizer, float rate = kBaseRate) {
  std::vector<std::vector<float>> arrays = {{1, -2, 0.5f}};
  for (const SlotSpec& slot : optimizer.slots()) arrays.emplace_back(3, slot.initial_value);
  for (int64_t update = 0; update < 5; ++update) {
    const std::vector<float> gradient = {2, static_cast<float>(update), -0.25f};
    std::vector<const float*> in;
    std::vector<float*> out;
    for (size_t i = 1; i < arrays.size(); ++i) {
      in.push_back(arrays[i].data());
      out.push_back(arrays[i].data());
    }
    optimizer.Update({arrays[0], in, EncodedGradient(gradient.data()), absl::MakeSpan(arrays[0]),
                      absl::MakeSpan(out), rate, update});
  }
  return arrays;
}

TEST(VariableOptimizersTest, WithoutGroupsAllHaveTheSame) {
  const VariableOptimizers optimizers = Optimizers("adam {}");
  for (const size_t v : {0, 1, 2}) EXPECT_EQ(&optimizers.Of(v), &optimizers.Of(0));
  EXPECT_EQ(Trained(optimizers.Of(0)), Trained(*Create("adam {}")));
  EXPECT_EQ(Trained(optimizers.Of(3)), Trained(*CreateMovingAverage(0.5f)));
}

TEST(VariableOptimizersTest, TheFirstGroupThatMatchesDecides) {
  const VariableOptimizers optimizers = Optimizers(
      "adam {} clip_value: 1 groups { variables: 'wide/*' ftrl { l1: 0.5 } }"
      "groups { variables: '*/kernel' momentum {} } groups { variables: 'wide/*' sgd {} }");
  EXPECT_EQ(Trained(optimizers.Of(0)), Trained(*Create("ftrl { l1: 0.5 } clip_value: 1")));
  EXPECT_EQ(Trained(optimizers.Of(1)), Trained(*Create("momentum {} clip_value: 1")));
  EXPECT_EQ(Trained(optimizers.Of(2)), Trained(*Create("adam {} clip_value: 1")));
}

TEST(VariableOptimizersTest, AveragesStayAverages) {
  const VariableOptimizers optimizers = Optimizers(
      "sgd {} groups { variables: '*' adam {} learning_rate_factor: 7 weight_decay: 0.5 }");
  EXPECT_EQ(Trained(optimizers.Of(3)), Trained(*CreateMovingAverage(0.5f)));
  EXPECT_FALSE(IsFrozen(ParseAs<v1::OptimizerConfig>("groups { variables: '*' frozen: true }"),
                        Variables()[3]));
}

TEST(VariableOptimizersTest, NumbersReplaceThoseOfTheJob) {
  const VariableOptimizers optimizers = Optimizers(
      "sgd {} clip_value: 1 l2: 0.25 groups { variables: 'wide/*' clip_value: 0.5 l2: 0 }"
      "groups { variables: 'deep/k*' clip_value: 0 l2: 0.125 }");
  EXPECT_EQ(Trained(optimizers.Of(0)), Trained(*Create("sgd {} clip_value: 0.5")));
  EXPECT_EQ(Trained(optimizers.Of(1)), Trained(*Create("sgd {} l2: 0.125")));
  EXPECT_EQ(Trained(optimizers.Of(2)), Trained(*Create("sgd {} clip_value: 1 l2: 0.25")));
}

TEST(VariableOptimizersTest, RatesAreTheGroups) {
  for (const char* kind : {"sgd {}", "adamw {}", "rmsprop { momentum: 0.5 }", "ftrl {}"}) {
    const VariableOptimizers optimizers =
        Optimizers(std::string(kind) +
                   " groups { variables: 'wide/*' learning_rate_factor: 0.25 }"
                   " groups { variables: 'deep/k*' learning_rate: 0.1 }");
    const std::unique_ptr<Optimizer> alone = Create(kind);
    EXPECT_EQ(Trained(optimizers.Of(0)), Trained(*alone, 0.125f)) << kind;
    EXPECT_EQ(Trained(optimizers.Of(1)), Trained(*alone, 0.1f)) << kind;
    EXPECT_EQ(Trained(optimizers.Of(2)), Trained(*alone)) << kind;
  }
}

TEST(VariableOptimizersTest, WeightDecayIsAdamWs) {
  const VariableOptimizers optimizers = Optimizers(
      "adam {} groups { variables: 'wide/*' weight_decay: 0.125 }"
      "groups { variables: 'deep/k*' adamw {} weight_decay: 0.25 }");
  EXPECT_EQ(Trained(optimizers.Of(0)), Trained(*Create("adamw { weight_decay: 0.125 }")));
  EXPECT_EQ(Trained(optimizers.Of(1)), Trained(*Create("adamw { weight_decay: 0.25 }")));
}

TEST(VariableOptimizersTest, WeightDecayOfAnyRuleFollowsTheFormula) {
  const VariableOptimizers optimizers =
      Optimizers("momentum {} groups { variables: 'wide/*' weight_decay: 0.1 l2: 0.5 }");
  const std::vector<std::vector<float>> found = Trained(optimizers.Of(0));
  const double start[] = {1, -2, 0.5};
  for (size_t i = 0; i < 3; ++i) {
    double value = start[i], accumulator = 0;
    for (int update = 0; update < 5; ++update) {
      const double gradient[] = {2, double(update), -0.25};
      accumulator = 0.9f * accumulator + gradient[i] + 0.5 * value;
      value = (1 - kBaseRate * 0.1f) * value - kBaseRate * accumulator;
    }
    EXPECT_NEAR(found[0][i], value, 1e-5) << i;
    EXPECT_NEAR(found[1][i], accumulator, 1e-5) << i;
  }
}

TEST(VariableOptimizersTest, FrozenVariablesStayAsTheyAre) {
  const std::string text =
      "adam {} clip_value: 1 l2: 1 groups { variables: 'deep/*' frozen: true }";
  const VariableOptimizers optimizers = Optimizers(text);
  EXPECT_THAT(Trained(optimizers.Of(1)), ElementsAre(ElementsAre(1, -2, 0.5f)));
  EXPECT_THAT(optimizers.Slots()[2], IsEmpty());
  const auto config = ParseAs<v1::OptimizerConfig>(text);
  EXPECT_FALSE(IsFrozen(config, Variables()[0]));
  EXPECT_TRUE(IsFrozen(config, Variables()[1]));
  // Out of place.
  const std::vector<float> values = {1, -2, 3}, gradient = {5, 5, 5};
  std::vector<float> after(3);
  optimizers.Of(1).Update(
      {values, {}, EncodedGradient(gradient.data()), absl::MakeSpan(after), {}, kBaseRate, 0});
  EXPECT_EQ(after, values);
}

TEST(VariableOptimizersTest, ScalarsOfSeveralGroupsAreNumberedAsTensorFlows) {
  const VariableOptimizers optimizers = Optimizers(
      "adam { beta1: 0.5 beta2: 0.25 } groups { variables: 'wide/*' sgd {} }"
      "groups { variables: 'deep/*' adam { beta1: 0.125 beta2: 0.75 } }");
  EXPECT_THAT(optimizers.ScalarState(0),
              ElementsAre(Pair("beta1_power", 0.5f), Pair("beta2_power", 0.25f),
                          Pair("beta1_power_1", 0.125f), Pair("beta2_power_1", 0.75f)));
}

TEST(VariableOptimizersTest, ErrorsNameTheGroupsField) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"",
       "optimizer: expected one of sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl, "
       "row_wise_adagrad, found none"},
      {"sgd {} groups { variables: '*' ftrl { l1: -1 } }",
       "optimizer.groups[0].ftrl.l1: expected >= 0, found -1"},
      {"sgd {} groups { variables: 'a' } groups { variables: '*' clip_value: nan }",
       "optimizer.groups[1].clip_value: expected >= 0, found nan"},
      {"sgd {} groups { variables: '*' weight_decay: -1 }",
       "optimizer.groups[0].weight_decay: expected >= 0, found -1"},
      {"sgd {} groups { variables: '*' learning_rate_factor: 0 }",
       "optimizer.groups[0].learning_rate: expected > 0, found 0 times that of the others"},
  };
  for (const auto& [config, error] : kErrors) {
    EXPECT_EQ(TryCreate(config).status(), absl::InvalidArgumentError(error)) << config;
  }
}

}  // namespace
}  // namespace keelson
