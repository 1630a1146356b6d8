#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/optim/optim_testing.h"
#include "core/optim/optimizer.h"
#include "core/wire/simd_targets_testing.h"
#include "core/wire/value_codec.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<std::unique_ptr<Optimizer>> TryCreate(const std::string& rule,
                                                     const std::string& stale) {
  return CreateOptimizer(ParseAs<v1::OptimizerConfig>(rule),
                         ParseAs<v1::StaleGradientConfig>(stale));
}

std::unique_ptr<Optimizer> CreateCompensated(const std::string& rule,
                                             const std::string& compensation = "") {
  return TryCreate(rule, "delay_compensation {" + compensation + "}").value();
}

// Values, then slots.
using Arrays = std::vector<std::vector<float>>;

Arrays InitialState(const Optimizer& optimizer, size_t n) {
  Arrays arrays = {RandomVector(n, 1)};
  for (const SlotSpec& slot : optimizer.slots()) arrays.emplace_back(n, slot.initial_value);
  return arrays;
}

void Update(const Optimizer& optimizer, EncodedGradient gradient,
            absl::Span<const float> worker_values, float rate, const Arrays& from, Arrays* to) {
  std::vector<const float*> slots_in;
  std::vector<float*> slots_out;
  for (size_t i = 1; i < from.size(); ++i) {
    slots_in.push_back(from[i].data());
    slots_out.push_back((*to)[i].data());
  }
  optimizer.Update({from[0], slots_in, gradient, absl::MakeSpan((*to)[0]),
                    absl::MakeSpan(slots_out), rate, 0, worker_values});
}

Arrays Updated(const Optimizer& optimizer, const Arrays& from, EncodedGradient gradient,
               absl::Span<const float> worker_values) {
  Arrays to = from;
  Update(optimizer, gradient, worker_values, 0.1f, to, &to);
  return to;
}

void ExpectSameBits(const Arrays& a, const Arrays& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(Bits(a[i]), Bits(b[i])) << "array " << i;
}

constexpr const char* kRules[] = {"sgd {}",          "sgd {} clip_value: 0.5 l2: 0.01",
                                  "momentum {}",     "momentum { nesterov: true }",
                                  "adagrad {}",      "rmsprop { momentum: 0.5 }",
                                  "adam {}",         "adamw {}",
                                  "ftrl { l1: 0.5 }"};

TEST(DelayCompensationTest, FollowsTheFormula) {
  const auto optimizer = CreateCompensated("sgd {}", "lambda: 1.5 decay: 0.8 epsilon: 0.01");
  const std::vector<float> worker_values = {1, 2, 3};
  Arrays state = {{1.5f, 2, 2.5f}, {0.5f, 0.25f, 0}};
  const std::vector<float> gradient = {2, -1, 0.5f};
  std::vector<double> values, mean_squares;
  for (size_t i = 0; i < 3; ++i) {
    const double g = gradient[i];
    const double mean_square = 0.8 * state[1][i] + 0.2 * g * g;
    const double corrected =
        g + 1.5 / std::sqrt(mean_square + 0.01) * g * g * (state[0][i] - worker_values[i]);
    values.push_back(state[0][i] - 0.1 * corrected);
    mean_squares.push_back(mean_square);
  }
  state = Updated(*optimizer, state, EncodedGradient(gradient.data()), worker_values);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(state[0][i], values[i], 1e-6);
    EXPECT_NEAR(state[1][i], mean_squares[i], 1e-6);
  }
}

// Near a minimum of a quadratic the correction is towards the gradient at the present values.
TEST(DelayCompensationTest, CorrectsTowardsTheGradientAtThePresentValues) {
  const auto gradient_at = [](float x) { return x; };  // of x^2 / 2
  const auto optimizer = CreateCompensated("sgd {}", "lambda: 1 decay: 0 epsilon: 1e-12");
  const float old_value = 0.9f, value = 0.4f;
  Arrays state = {{value}, {0}};
  const std::vector<float> gradient = {gradient_at(old_value)};
  state = Updated(*optimizer, state, EncodedGradient(gradient.data()), {&old_value, 1});
  const float plain = value - 0.1f * gradient_at(old_value);
  const float fresh = value - 0.1f * gradient_at(value);
  EXPECT_LT(std::abs(state[0][0] - fresh), std::abs(plain - fresh) / 5);
}

TEST(DelayCompensationTest, HasOneMoreSlotAndTheRulesScalars) {
  const auto adam = CreateCompensated("adam {}");
  ASSERT_EQ(adam->slots().size(), 3u);
  EXPECT_EQ(adam->slots()[0].name, "Adam");
  EXPECT_EQ(adam->slots()[2].name, "MeanSquare");
  EXPECT_EQ(adam->slots()[2].initial_value, 0);
  EXPECT_EQ(adam->ScalarState(3), TryCreate("adam {}", "").value()->ScalarState(3));
  EXPECT_TRUE(adam->reads_worker_values());
  EXPECT_FALSE(TryCreate("adam {}", "scale_learning_rate: true").value()->reads_worker_values());
}

TEST(DelayCompensationTest, DefaultsAreThoseOfTheDescription) {
  const auto by_default = CreateCompensated("sgd {}");
  const auto explicitly = CreateCompensated("sgd {}", "lambda: 2 decay: 0.95 epsilon: 1e-7");
  const Arrays before = InitialState(*by_default, 50);
  const std::vector<float> gradient = RandomVector(50, 2), old_values = RandomVector(50, 3);
  ExpectSameBits(Updated(*by_default, before, EncodedGradient(gradient.data()), old_values),
                 Updated(*explicitly, before, EncodedGradient(gradient.data()), old_values));
}

TEST(DelayCompensationTest, LambdaZeroAndUnknownValuesAreThePlainRuleBitByBit) {
  std::vector<float> gradient = RandomVector(5000, 2);
  gradient[0] = -0.0f;
  gradient[1] = 0;
  gradient[2] = std::numeric_limits<float>::infinity();
  const std::vector<float> old_values = RandomVector(5000, 3);
  for (const char* rule : kRules) {
    SCOPED_TRACE(rule);
    const auto plain = TryCreate(rule, "").value();
    Arrays before = InitialState(*plain, 5000);
    before[0][0] = -0.0f;
    const Arrays expected = Updated(*plain, before, EncodedGradient(gradient.data()), {});
    before.emplace_back(5000, 0.25f);
    for (const bool known : {true, false}) {
      const auto compensated = CreateCompensated(rule, known ? "lambda: 0" : "");
      const absl::Span<const float> worker_values =
          known ? absl::MakeConstSpan(old_values) : absl::Span<const float>();
      Arrays after = Updated(*compensated, before, EncodedGradient(gradient.data()), worker_values);
      // The mean goes on all the same.
      EXPECT_FLOAT_EQ(after.back()[3], 0.95f * 0.25f + 0.05f * gradient[3] * gradient[3]);
      after.pop_back();
      ExpectSameBits(after, expected);
    }
  }
}

TEST(DelayCompensationTest, NoMoveIsNoCorrection) {
  const auto plain = TryCreate("momentum {}", "").value();
  const auto compensated = CreateCompensated("momentum {}");
  const std::vector<float> gradient = RandomVector(3000, 2);
  const Arrays before = InitialState(*compensated, 3000);
  Arrays after = Updated(*compensated, before, EncodedGradient(gradient.data()), before[0]);
  after.pop_back();
  ExpectSameBits(after,
                 Updated(*plain, InitialState(*plain, 3000), EncodedGradient(gradient.data()), {}));
}

TEST(DelayCompensationTest, EveryElementIsTheSameBitsAloneOnAllProcessorsInAndOutOfPlace) {
  constexpr size_t kElements = 4200;  // more than two chunks
  const std::vector<float> gradient = RandomVector(kElements, 2);
  const std::vector<float> old_values = RandomVector(kElements, 3);
  for (const char* rule : kRules) {
    SCOPED_TRACE(rule);
    const auto optimizer = CreateCompensated(rule);
    const Arrays before = InitialState(*optimizer, kElements);
    const Arrays expected =
        Updated(*optimizer, before, EncodedGradient(gradient.data()), old_values);
    ForEachInstructionSet([&] {
      Arrays after(before.size(), std::vector<float>(kElements));
      Update(*optimizer, EncodedGradient(gradient.data()), old_values, 0.1f, before, &after);
      ExpectSameBits(after, expected);
    });
    for (const size_t i : {0u, 17u, 2047u, 2048u, 4096u, 4199u}) {
      Arrays one;
      for (const auto& array : before) one.push_back({array[i]});
      one = Updated(*optimizer, one, EncodedGradient(gradient.data() + i), {&old_values[i], 1});
      for (size_t k = 0; k < one.size(); ++k) EXPECT_EQ(Bits(one[k])[0], Bits(expected[k])[i]);
    }
  }
}

TEST(DelayCompensationTest, EveryFormatIsDecodingThenFloat32) {
  constexpr size_t kElements = 2500;
  const auto optimizer = CreateCompensated("adagrad {}");
  const Arrays before = InitialState(*optimizer, kElements);
  const std::vector<float> old_values = RandomVector(kElements, 3);
  const std::vector<float> gradient = RandomVector(kElements, 2);
  for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBfloat16}) {
    std::vector<uint8_t> bytes(kElements * 2);
    EncodeElements(format, gradient, bytes.data());
    std::vector<float> decoded(kElements);
    DecodeElements(format, bytes.data(), absl::MakeSpan(decoded));
    ExpectSameBits(Updated(*optimizer, before, EncodedGradient(format, bytes.data()), old_values),
                   Updated(*optimizer, before, EncodedGradient(decoded.data()), old_values));
  }
  const std::vector<uint8_t> bytes(kElements, 3);
  const std::vector<float> decoded(kElements, 0.75f);
  ExpectSameBits(Updated(*optimizer, before,
                         EncodedGradient(WireFormat::kInt8, bytes.data(), 0.25f), old_values),
                 Updated(*optimizer, before, EncodedGradient(decoded.data()), old_values));
}

TEST(DelayCompensationTest, RefusesSettingsThatMakeNoSense) {
  const auto message = [](const std::string& compensation) {
    const absl::Status status =
        TryCreate("sgd {}", "delay_compensation {" + compensation + "}").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const std::string field = "consistency.stale_gradients.delay_compensation.";
  EXPECT_EQ(message("lambda: -1"), field + "lambda: expected >= 0, found -1");
  EXPECT_EQ(message("decay: 1"), field + "decay: expected [0, 1), found 1");
  EXPECT_EQ(message("epsilon: 0"), field + "epsilon: expected > 0, found 0");
  EXPECT_THAT(message("lambda: nan"), StartsWith(field + "lambda"));
  EXPECT_THAT(std::string(TryCreate("", "delay_compensation {}").status().message()),
              HasSubstr("optimizer: expected one of"));
}

}  // namespace
}  // namespace keelson
