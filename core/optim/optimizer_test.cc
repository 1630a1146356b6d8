#include "core/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>

#include "core/optim/optim_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Values and slots of `n` elements with an optimizer.
struct State {
  State(const Optimizer& optimizer, std::vector<float> initial) : values(std::move(initial)) {
    for (const SlotSpec& slot : optimizer.slots()) {
      slots.emplace_back(values.size(), slot.initial_value);
    }
  }

  friend bool operator==(const State& a, const State& b) = default;

  std::vector<float> values;
  std::vector<std::vector<float>> slots;
  int64_t updates = 0;
};

// Updates elements [begin, end) of `from` into `to`, which may be the same object.
void UpdateRange(const Optimizer& optimizer, const State& from, size_t begin, size_t end,
                 absl::Span<const float> gradient, float rate, State* to) {
  std::vector<const float*> slots_in;
  std::vector<float*> slots_out;
  for (const auto& slot : from.slots) slots_in.push_back(slot.data() + begin);
  for (auto& slot : to->slots) slots_out.push_back(slot.data() + begin);
  optimizer.Update({absl::MakeConstSpan(from.values).subspan(begin, end - begin), slots_in,
                    EncodedGradient(gradient.data() + begin),
                    absl::MakeSpan(to->values).subspan(begin, end - begin),
                    absl::MakeSpan(slots_out), rate, from.updates});
}

void Update(const Optimizer& optimizer, absl::Span<const float> gradient, float rate,
            State* state) {
  UpdateRange(optimizer, *state, 0, state->values.size(), gradient, rate, state);
  ++state->updates;
}

// One element in double precision, written down from the papers, not from the code under test.
struct Reference {
  double value, a, b;  // a, b: the slots
};
using ReferenceRule = void (*)(Reference* x, double g, double lr, int t);  // t from 1

void Sgd(Reference* x, double g, double lr, int) { x->value -= lr * g; }

void Momentum(Reference* x, double g, double lr, int) {
  x->a = 0.8f * x->a + g;
  x->value -= lr * x->a;
}

void Nesterov(Reference* x, double g, double lr, int) {
  x->a = 0.9f * x->a + g;
  x->value -= lr * (g + 0.9f * x->a);
}

void Adagrad(Reference* x, double g, double lr, int) {
  x->a += g * g;
  x->value -= lr * g / (std::sqrt(x->a) + 1e-7);
}

void RmsProp(Reference* x, double g, double lr, int) {
  x->a = 0.9f * x->a + (1 - 0.9f) * g * g;
  x->b = 0.5 * x->b + lr * g / std::sqrt(x->a + 1e-10);
  x->value -= x->b;
}

void Adam(Reference* x, double g, double lr, int t) {
  const double beta1 = 0.9f, beta2 = 0.999f;
  x->a = beta1 * x->a + (1 - beta1) * g;
  x->b = beta2 * x->b + (1 - beta2) * g * g;
  const double rate = lr * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
  x->value -= rate * x->a / (std::sqrt(x->b) + 1e-8f);
}

// With a large epsilon, so that it matters where it is added.
void TorchAdam(Reference* x, double g, double lr, int t) {
  const double beta1 = 0.9f, beta2 = 0.999f;
  x->a = beta1 * x->a + (1 - beta1) * g;
  x->b = beta2 * x->b + (1 - beta2) * g * g;
  const double m = x->a / (1 - std::pow(beta1, t)), v = x->b / (1 - std::pow(beta2, t));
  x->value -= lr * m / (std::sqrt(v) + 0.5f);
}

void AdamW(Reference* x, double g, double lr, int t) {
  x->value -= lr * 0.1f * x->value;
  Adam(x, g, lr, t);
}

void Ftrl(Reference* x, double g, double lr, int) {
  const double n = x->a + g * g;
  x->b += g + 2 * 0.01f * x->value - (std::sqrt(n) - std::sqrt(x->a)) / lr * x->value;
  x->a = n;
  const double sign = x->b > 0 ? 1 : -1;
  const double divisor = (0.5 + std::sqrt(n)) / lr + 2 * 0.125;
  x->value = std::abs(x->b) <= 0.25 ? 0 : -(x->b - sign * 0.25) / divisor;
}

struct Case {
  const char* name;
  const char* config;
  ReferenceRule rule;
  std::vector<SlotSpec> slots;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class OptimizerTest : public testing::TestWithParam<Case> {
 protected:
  // 50 random steps beside the reference with a rate that changes; `adjust` is what config
  // options do to the gradient.
  void CompareWithReference(const Optimizer& optimizer, size_t n,
                            double (*adjust)(double gradient, double value)) {
    std::mt19937 random(42);
    State state(optimizer, RandomVector(n, &random));
    std::vector<Reference> reference(n);
    for (size_t i = 0; i < n; ++i) reference[i] = {state.values[i], Initial(0), Initial(1)};
    for (int t = 1; t <= 50; ++t) {
      const float rate = 0.1f / static_cast<float>(t);
      const std::vector<float> gradient = RandomVector(n, &random);
      Update(optimizer, gradient, rate, &state);
      for (size_t i = 0; i < n; ++i) {
        GetParam().rule(&reference[i], adjust(gradient[i], reference[i].value), rate, t);
      }
    }
    for (size_t i = 0; i < n; ++i) ExpectNear(reference[i], state, i);
  }

  double Initial(size_t slot) const {
    return slot < GetParam().slots.size() ? GetParam().slots[slot].initial_value : 0;
  }

  static void ExpectNear(const Reference& expected, const State& state, size_t i) {
    const auto tolerance = [](double x) { return 1e-5 * std::max(1.0, std::abs(x)); };
    EXPECT_NEAR(state.values[i], expected.value, tolerance(expected.value)) << "element " << i;
    if (!state.slots.empty()) {
      EXPECT_NEAR(state.slots[0][i], expected.a, tolerance(expected.a)) << "element " << i;
    }
    if (state.slots.size() > 1) {
      EXPECT_NEAR(state.slots[1][i], expected.b, tolerance(expected.b)) << "element " << i;
    }
  }
};

TEST_P(OptimizerTest, SlotsAreTensorFlows) {
  const std::unique_ptr<Optimizer> optimizer = Create(GetParam().config);
  ASSERT_EQ(optimizer->slots().size(), GetParam().slots.size());
  for (size_t i = 0; i < GetParam().slots.size(); ++i) {
    EXPECT_EQ(optimizer->slots()[i].name, GetParam().slots[i].name);
    EXPECT_EQ(optimizer->slots()[i].initial_value, GetParam().slots[i].initial_value);
  }
}

TEST_P(OptimizerTest, AgreesWithDoublePrecision) {
  const std::unique_ptr<Optimizer> optimizer = Create(GetParam().config);
  for (const size_t n : {0, 1, 3, 7, 64, 1001}) {
    CompareWithReference(*optimizer, n, [](double g, double) { return g; });
  }
}

TEST_P(OptimizerTest, ClipsElementsThenAddsL2) {
  const std::unique_ptr<Optimizer> optimizer =
      Create(std::string(GetParam().config) + " clip_value: 0.5 l2: 0.25");
  CompareWithReference(*optimizer, 101, [](double g, double value) {
    return std::max(-0.5, std::min(0.5, g)) + 0.25 * value;
  });
}

TEST_P(OptimizerTest, OutOfPlaceIsInPlace) {
  const std::unique_ptr<Optimizer> optimizer = Create(GetParam().config);
  std::mt19937 random(1);
  State in_place(*optimizer, RandomVector(77, &random));
  for (int step = 0; step < 10; ++step) {
    const std::vector<float> gradient = RandomVector(77, &random);
    const State old = in_place;
    State copy(*optimizer, std::vector<float>(77, std::nanf("")));
    UpdateRange(*optimizer, old, 0, 77, gradient, 0.1f, &copy);
    copy.updates = old.updates + 1;
    Update(*optimizer, gradient, 0.1f, &in_place);
    ASSERT_TRUE(copy == in_place) << "step " << step;
  }
}

TEST_P(OptimizerTest, BlocksAreTheWhole) {
  const std::unique_ptr<Optimizer> optimizer = Create(GetParam().config);
  std::mt19937 random(2);
  State whole(*optimizer, RandomVector(1003, &random));
  State blocks = whole;
  for (int step = 0; step < 10; ++step) {
    const std::vector<float> gradient = RandomVector(1003, &random);
    Update(*optimizer, gradient, 0.1f, &whole);
    const size_t ends[] = {1, 10, 333, 334, 1000, 1003};
    size_t begin = 0;
    for (const size_t end : ends) {
      UpdateRange(*optimizer, blocks, begin, end, gradient, 0.1f, &blocks);
      begin = end;
    }
    ++blocks.updates;
    ASSERT_TRUE(whole == blocks) << "step " << step;
  }
}

TEST_P(OptimizerTest, ContinuesFromSavedStateExactly) {
  const std::unique_ptr<Optimizer> optimizer = Create(GetParam().config);
  std::mt19937 random(3);
  State state(*optimizer, RandomVector(33, &random));
  for (int step = 0; step < 20; ++step) {
    Update(*optimizer, RandomVector(33, &random), 0.1f, &state);
  }
  const std::unique_ptr<Optimizer> other = Create(GetParam().config);
  State restored(*other, state.values);
  restored.slots = state.slots;
  restored.updates = state.updates;
  for (int step = 0; step < 5; ++step) {
    const std::vector<float> gradient = RandomVector(33, &random);
    Update(*optimizer, gradient, 0.1f, &state);
    Update(*other, gradient, 0.1f, &restored);
    ASSERT_TRUE(state == restored) << "step " << step;
  }
}

TEST_P(OptimizerTest, NanStaysInItsElement) {
  const std::unique_ptr<Optimizer> optimizer =
      Create(std::string(GetParam().config) + " clip_value: 1");
  State state(*optimizer, std::vector<float>(9, 1.0f));
  std::vector<float> gradient(9, 1.0f);
  gradient[4] = std::nanf("");
  Update(*optimizer, gradient, 0.1f, &state);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(state.values[i]), i == 4) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Rules, OptimizerTest,
    testing::Values(
        Case{"Sgd", "sgd {}", Sgd, {}},
        Case{"Momentum", "momentum { momentum: 0.8 }", Momentum, {{"Momentum", 0}}},
        Case{"Nesterov", "momentum { nesterov: true }", Nesterov, {{"Momentum", 0}}},
        Case{"Adagrad", "adagrad {}", Adagrad, {{"Adagrad", 0.1f}}},
        Case{"RmsProp", "rmsprop { momentum: 0.5 }", RmsProp, {{"RMSProp", 1}, {"RMSProp_1", 0}}},
        Case{"Adam", "adam {}", Adam, {{"Adam", 0}, {"Adam_1", 0}}},
        Case{"TorchAdam",
             "adam { corrected_epsilon: true epsilon: 0.5 }",
             TorchAdam,
             {{"Adam", 0}, {"Adam_1", 0}}},
        Case{"AdamW", "adamw { weight_decay: 0.1 }", AdamW, {{"Adam", 0}, {"Adam_1", 0}}},
        Case{"Ftrl",
             "ftrl { l1: 0.25 l2: 0.125 l2_shrinkage: 0.01 beta: 0.5 }",
             Ftrl,
             {{"Ftrl", 0.1f}, {"Ftrl_1", 0}}}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST(OptimizerDefaultsTest, DefaultsAreTheDocumentedNumbers) {
  const std::pair<const char*, const char*> kSame[] = {
      {"momentum {}", "momentum { momentum: 0.9 }"},
      {"adagrad {}", "adagrad { initial_accumulator: 0.1 epsilon: 1e-7 }"},
      {"rmsprop {}", "rmsprop { decay: 0.9 momentum: 0 epsilon: 1e-10 }"},
      {"adam {}", "adam { beta1: 0.9 beta2: 0.999 epsilon: 1e-8 }"},
      {"adamw {}", "adamw { beta1: 0.9 beta2: 0.999 epsilon: 1e-8 weight_decay: 0.01 }"},
      {"ftrl {}", "ftrl { initial_accumulator: 0.1 l1: 0 l2: 0 l2_shrinkage: 0 beta: 0 }"},
  };
  for (const auto& [defaults, written] : kSame) {
    const std::unique_ptr<Optimizer> a = Create(defaults), b = Create(written);
    State x(*a, {1, -2, 3}), y(*b, {1, -2, 3});
    for (int step = 0; step < 3; ++step) {
      Update(*a, {0.5f, -1e-6f, 0}, 0.1f, &x);
      Update(*b, {0.5f, -1e-6f, 0}, 0.1f, &y);
    }
    EXPECT_TRUE(x == y) << defaults;
  }
}

TEST(FtrlTest, WithinL1ValuesAreExactlyZero) {
  const std::unique_ptr<Optimizer> ftrl = Create("ftrl { l1: 1 }");
  State state(*ftrl, {0, 0, 0, 0});
  Update(*ftrl, {0.5f, -1, 1.5f, -3}, 0.1f, &state);
  EXPECT_EQ(state.values[0], 0);
  EXPECT_EQ(state.values[1], 0);
  EXPECT_LT(state.values[2], 0);
  EXPECT_GT(state.values[3], 0);
}

TEST(FtrlTest, NoSumOfGradientsAndNoRateDivideByZero) {
  const std::unique_ptr<Optimizer> ftrl = Create("ftrl { initial_accumulator: 0 }");
  State state(*ftrl, {0, 1});
  Update(*ftrl, {0, 0}, 0.1f, &state);
  EXPECT_THAT(state.values, ElementsAre(0, 0));
  Update(*ftrl, {1, -2}, 0.1f, &state);
  const State before = state;
  const std::unique_ptr<Optimizer> with_beta = Create("ftrl { beta: 1 }");
  for (const auto* optimizer : {ftrl.get(), with_beta.get()}) {
    State after(*optimizer, {std::nanf(""), std::nanf("")});
    UpdateRange(*optimizer, before, 0, 2, {5, 5}, 0, &after);
    EXPECT_EQ(after.values, before.values);
    EXPECT_EQ(after.slots, before.slots);
  }
}

TEST(OptimizerScalarStateTest, AdamStoresThePowersOfItsBetas) {
  const std::unique_ptr<Optimizer> adam = Create("adam { beta1: 0.5 beta2: 0.25 }");
  EXPECT_THAT(adam->ScalarState(0),
              ElementsAre(Pair("beta1_power", 0.5f), Pair("beta2_power", 0.25f)));
  EXPECT_THAT(adam->ScalarState(2),
              ElementsAre(Pair("beta1_power", 0.125f), Pair("beta2_power", 0.015625f)));
  EXPECT_EQ(Create("adamw {}")->ScalarState(0).size(), 2u);
}

TEST(OptimizerScalarStateTest, OthersHaveNone) {
  for (const char* config : {"sgd {}", "momentum {}", "adagrad {}", "rmsprop {}", "ftrl {}"}) {
    EXPECT_TRUE(Create(config)->ScalarState(5).empty()) << config;
  }
}

TEST(CreateOptimizerTest, ErrorsNameTheField) {
  struct Error {
    const char* config;
    const char* error;
  };
  const Error kErrors[] = {
      {"",
       "optimizer: expected one of sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl, "
       "row_wise_adagrad, found none"},
      {"row_wise_adagrad {}",
       "optimizer.row_wise_adagrad: expected an algorithm for variables, found one for the rows of "
       "tables alone"},
      {"sgd {} clip_global_norm: -1", "optimizer.clip_global_norm: expected >= 0, found -1"},
      {"sgd {} clip_value: -2", "optimizer.clip_value: expected >= 0, found -2"},
      {"sgd {} clip_value: inf", "optimizer.clip_value: expected >= 0, found inf"},
      {"sgd {} l2: nan", "optimizer.l2: expected >= 0, found nan"},
      {"momentum { momentum: 1.5 }", "optimizer.momentum.momentum: expected [0, 1), found 1.5"},
      {"momentum { momentum: 1 nesterov: true }",
       "optimizer.momentum.momentum: expected [0, 1), found 1"},
      {"adagrad { initial_accumulator: -1 }",
       "optimizer.adagrad.initial_accumulator: expected >= 0, found -1"},
      {"adagrad { epsilon: 0 }", "optimizer.adagrad.epsilon: expected > 0, found 0"},
      {"rmsprop { decay: 1 }", "optimizer.rmsprop.decay: expected [0, 1), found 1"},
      {"rmsprop { momentum: -0.5 }", "optimizer.rmsprop.momentum: expected [0, 1), found -0.5"},
      {"rmsprop { epsilon: 0 }", "optimizer.rmsprop.epsilon: expected > 0, found 0"},
      {"adam { beta1: 1 }", "optimizer.adam.beta1: expected [0, 1), found 1"},
      {"adam { beta2: nan }", "optimizer.adam.beta2: expected [0, 1), found nan"},
      {"adam { epsilon: -1 }", "optimizer.adam.epsilon: expected > 0, found -1"},
      {"adam { beta1: 0.9 beta2: 0.8 exact: true }",
       "optimizer.adam.beta1: expected below the square root of beta2 with exact, found 0.9"},
      {"adamw { beta1: 2 }", "optimizer.adamw.beta1: expected [0, 1), found 2"},
      {"ftrl { initial_accumulator: -1 }",
       "optimizer.ftrl.initial_accumulator: expected >= 0, found -1"},
      {"ftrl { l1: -1 }", "optimizer.ftrl.l1: expected >= 0, found -1"},
      {"ftrl { l2: nan }", "optimizer.ftrl.l2: expected >= 0, found nan"},
      {"ftrl { l2_shrinkage: inf }", "optimizer.ftrl.l2_shrinkage: expected >= 0, found inf"},
      {"ftrl { beta: -0.5 }", "optimizer.ftrl.beta: expected >= 0, found -0.5"},
      {"adamw { weight_decay: -1 }", "optimizer.adamw.weight_decay: expected >= 0, found -1"},
  };
  for (const Error& e : kErrors) {
    EXPECT_EQ(CreateOptimizer(ParseAs<v1::OptimizerConfig>(e.config)).status(),
              absl::InvalidArgumentError(e.error))
        << e.config;
  }
}

}  // namespace
}  // namespace keelson
