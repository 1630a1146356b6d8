// Rows in steps that do not have them.
#include <cmath>
#include <memory>
#include <ostream>
#include <random>
#include <vector>

#include "core/optim/row_optimizer_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

// A row that some steps have and others do not, beside double precision that takes every step, with
// gradients of 0 in those that do not.
struct ExactCase {
  const char* name;
  const char* config;
  double weight_decay;  // of the group; 0: the configuration's own
  double tolerance;     // of values
  // One step of an element: value and two slots.
  void (*step)(double* value, double* a, double* b, double g, bool has_row, int64_t t);
};

void PrintTo(const ExactCase& c, std::ostream* out) { *out << c.name; }

void ExactAdam(double* value, double* m, double* v, double g, bool, int64_t t) {
  const double beta1 = 0.9f, beta2 = 0.999f, at = static_cast<double>(t);
  *m = beta1 * *m + (1 - beta1) * g;
  *v = beta2 * *v + (1 - beta2) * g * g;
  const double rate = kRowRate * std::sqrt(1 - std::pow(beta2, at)) / (1 - std::pow(beta1, at));
  *value -= rate * *m / (std::sqrt(*v) + 1e-8f);
}

void ExactAdamW(double* value, double* m, double* v, double g, bool has_row, int64_t t) {
  *value -= kRowRate * 0.02f * *value;
  ExactAdam(value, m, v, g, has_row, t);
}

void DecayedAdagrad(double* value, double* n, double*, double g, bool, int64_t) {
  *value -= kRowRate * 0.02f * *value;
  *n += g * g;
  *value -= kRowRate * g / (std::sqrt(*n) + 1e-7f);
}

// The moments stand still in steps without the row.
void DecayedMomentum(double* value, double* a, double*, double g, bool has_row, int64_t) {
  *value -= kRowRate * 0.02f * *value;
  if (!has_row) return;
  *a = 0.5 * *a + g;
  *value -= kRowRate * *a;
}

class ExactRowsTest : public testing::TestWithParam<ExactCase> {};

TEST_P(ExactRowsTest, RowsMoveInEveryStep) {
  constexpr size_t kDim = 19;
  OptimizerAdjustment adjustment;
  if (GetParam().weight_decay > 0) {
    adjustment = {.weight_decay = 0.02f, .exact_weight_decay = true};
  }
  const auto optimizer = CreateRows(GetParam().config, kDim, adjustment);
  ASSERT_TRUE(optimizer->catches_up());
  std::mt19937 random(17);
  for (const int mean_gap : {0, 1, 5, 100, 3000}) {
    TestRows rows(*optimizer, 1, 5);
    std::vector<double> value(rows.row(0), rows.row(0) + kDim);
    std::vector<double> a(kDim, optimizer->slots()[0].initial_value), b(kDim, 0);
    std::uniform_int_distribution<int64_t> gap(0, 2 * mean_gap);
    int64_t step = 0, last = -1;
    for (uint32_t update = 0; update < 30; ++update) {
      const int64_t now = step + gap(random);
      const std::vector<float> gradient = RandomVector(kDim, 1000 + update);
      for (; step <= now; ++step) {
        if (last < 0 && step < now) continue;  // the row is not yet
        for (size_t e = 0; e < kDim; ++e) {
          GetParam().step(&value[e], &a[e], &b[e], step == now ? gradient[e] : 0, step == now,
                          step + 1);
        }
      }
      rows.missed()[0] = last < 0 ? 0 : static_cast<uint32_t>(now - last - 1);
      rows.Update(gradient, now);
      last = now;
      for (size_t e = 0; e < kDim; ++e) {
        ASSERT_NEAR(rows.row(0)[e], value[e], GetParam().tolerance)
            << mean_gap << ", step " << now << ": " << e;
        const double tolerance = 2e-5 * std::abs(a[e]) + 1e-6;
        ASSERT_NEAR(rows.slot(0, 0)[e], a[e], tolerance) << mean_gap << ": " << e;
        if (optimizer->slots().size() > 1) {
          ASSERT_NEAR(rows.slot(0, 1)[e], b[e], 2e-5 * b[e]) << e;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ExactRowsTest,
    testing::Values(
        ExactCase{"Adam", "adam { exact: true }", 0, 2e-4, ExactAdam},
        ExactCase{"AdamW", "adamw { weight_decay: 0.02 exact: true }", 0, 5e-4, ExactAdamW},
        ExactCase{"Adagrad", "adagrad {}", 0.02, 1e-5, DecayedAdagrad},
        ExactCase{"Momentum", "momentum { momentum: 0.5 }", 0.02, 1e-5, DecayedMomentum}),
    [](const testing::TestParamInfo<ExactCase>& info) { return info.param.name; });

TEST(ExactDecayTest, AScaledRateIsNotThatOfTheMissedSteps) {
  const auto optimizer =
      CreateRows("sgd {}", 2, {.weight_decay = 0.5f, .exact_weight_decay = true});
  std::vector<float> row = {1, -2};
  float* const rows[] = {row.data()};
  const uint32_t missed[] = {3};
  const float zeros[2] = {};
  optimizer->Update({rows,
                     {WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(zeros), 0},
                     {},
                     missed,
                     10,
                     0.25f,
                     1});
  EXPECT_THAT(row, ElementsAre(0.125f * 0.875f, -0.25f * 0.875f));
}

}  // namespace
}  // namespace keelson
