// What the optimizers of rows compute; row_update_test.cc holds how their bits come about,
// row_catch_up_test.cc what happens in steps without a row.
#include "core/optim/row_optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/optim/row_optimizer_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::IsEmpty;

constexpr size_t kDims[] = {1, 3, 8, 16, 17, 1024};

// The rules whose elements are independent: what an Optimizer does of the same configuration, which
// optimizer_test.cc compares with double precision.
class ElementwiseRowsTest : public testing::TestWithParam<const char*> {
 protected:
  // Updates one row's elements as a variable of their own.
  static void UpdateAlone(const Optimizer& optimizer, absl::Span<const float> gradient,
                          int64_t update, std::vector<std::vector<float>>* arrays) {
    std::vector<const float*> in;
    std::vector<float*> out;
    for (size_t k = 1; k < arrays->size(); ++k) {
      in.push_back((*arrays)[k].data());
      out.push_back((*arrays)[k].data());
    }
    optimizer.Update({(*arrays)[0], in, EncodedGradient(gradient.data()),
                      absl::MakeSpan((*arrays)[0]), absl::MakeSpan(out), kRowRate, update});
  }
};

TEST_P(ElementwiseRowsTest, SlotsAreThoseOfVariables) {
  const std::vector<SlotSpec> slots = Create(GetParam())->slots();
  for (const size_t dim : kDims) {
    const std::unique_ptr<RowOptimizer> rows = CreateRows(GetParam(), dim);
    ASSERT_EQ(rows->slots().size(), slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(rows->slots()[i].name, slots[i].name);
      EXPECT_EQ(rows->slots()[i].initial_value, slots[i].initial_value);
      EXPECT_EQ(rows->slots()[i].floats, dim);
    }
    EXPECT_EQ(rows->row_floats(), dim * (1 + slots.size()));
  }
}

TEST_P(ElementwiseRowsTest, EachRowIsUpdatedAsAVariableOfItsOwn) {
  const std::unique_ptr<Optimizer> variable = Create(GetParam());
  for (const size_t dim : kDims) {
    for (const size_t n : {size_t{1}, size_t{2}, size_t{7}, dim > 100 ? size_t{20} : size_t{300}}) {
      const std::unique_ptr<RowOptimizer> optimizer = CreateRows(GetParam(), dim);
      TestRows rows(*optimizer, n, 1);
      std::vector<std::vector<std::vector<float>>> alone;
      for (size_t i = 0; i < n; ++i) {
        alone.push_back({rows.values(i)});
        for (const SlotSpec& slot : variable->slots())
          alone[i].emplace_back(dim, slot.initial_value);
      }
      for (int64_t update = 0; update < 6; ++update) {
        const std::vector<float> gradients =
            RandomVector(n * dim, 3 + static_cast<uint32_t>(update));
        rows.Update(gradients);
        for (size_t i = 0; i < n; ++i) {
          UpdateAlone(*variable, absl::MakeConstSpan(gradients).subspan(i * dim, dim), update,
                      &alone[i]);
        }
      }
      for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < alone[i].size(); ++k) {
          for (size_t e = 0; e < dim; ++e) {
            const float expected = alone[i][k][e], found = rows.row(i)[k * dim + e];
            // Adam's rates come from pow there.
            const float tolerance = optimizer->counts_updates() ? 3e-7f * std::abs(expected) : 0;
            ASSERT_NEAR(found, expected, tolerance) << dim << ": " << i << " " << k << " " << e;
          }
        }
      }
      EXPECT_TRUE(rows.GapsAreWhole());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ElementwiseRowsTest,
    testing::Values("sgd {}", "sgd {} clip_value: 0.5 l2: 0.25", "momentum {}",
                    "momentum { nesterov: true }", "adagrad {} clip_value: 1",
                    "rmsprop { momentum: 0.5 }", "adam {}", "adamw { weight_decay: 0.5 } l2: 0.1",
                    "ftrl { l1: 0.25 l2: 0.125 l2_shrinkage: 0.01 beta: 0.5 }"));

TEST(RowWiseAdagradTest, AgreesWithDoublePrecision) {
  for (const size_t dim : kDims) {
    const auto optimizer =
        CreateRows("row_wise_adagrad { initial_accumulator: 0.5 } clip_value: 2 l2: 0.125", dim,
                   {.weight_decay = 0.25f});
    ASSERT_EQ(optimizer->slots().size(), 1u);
    EXPECT_EQ(optimizer->slots()[0].name, "RowWiseAdagrad");
    EXPECT_EQ(optimizer->slots()[0].floats, 1u);
    EXPECT_EQ(optimizer->row_floats(), dim + 1);
    constexpr size_t kRows = 13;
    TestRows rows(*optimizer, kRows, 6);
    std::vector<std::vector<double>> values;
    std::vector<double> sums(kRows, 0.5);
    for (size_t i = 0; i < kRows; ++i) {
      values.emplace_back(rows.row(i), rows.row(i) + dim);
    }
    for (uint32_t update = 0; update < 100; ++update) {
      const std::vector<float> gradients = RandomVector(kRows * dim, 100 + update);
      rows.Update(gradients);
      for (size_t i = 0; i < kRows; ++i) {
        std::vector<double> g(dim);
        double squares = 0;
        for (size_t e = 0; e < dim; ++e) {
          g[e] = std::clamp<double>(gradients[i * dim + e], -2, 2) + 0.125 * values[i][e];
          squares += g[e] * g[e];
        }
        sums[i] += squares / static_cast<double>(dim);
        for (size_t e = 0; e < dim; ++e) {
          values[i][e] =
              values[i][e] * (1 - kRowRate * 0.25) - kRowRate * g[e] / (std::sqrt(sums[i]) + 1e-8f);
        }
      }
    }
    for (size_t i = 0; i < kRows; ++i) {
      EXPECT_NEAR(*rows.slot(i, 0), sums[i], 1e-5 * sums[i]);
      for (size_t e = 0; e < dim; ++e) EXPECT_NEAR(rows.row(i)[e], values[i][e], 1e-5) << dim;
    }
  }
}

TEST(LazyAdamTest, TIsTheNumberOfTheRowsOwnUpdatesAndStays) {
  constexpr size_t kDim = 4;
  const auto rows_adam = CreateRows("adam {}", kDim);
  EXPECT_TRUE(rows_adam->counts_updates());
  EXPECT_FALSE(rows_adam->catches_up());
  const std::unique_ptr<Optimizer> adam = Create("adam {}");
  const std::vector<uint16_t> updates = {0, 1, 9, 1000, 65534, 65535};
  TestRows rows(*rows_adam, updates.size(), 2);
  rows.updates() = updates;
  const std::vector<float> gradients(updates.size() * kDim, 0.5f);
  std::vector<std::vector<float>> before;
  for (size_t i = 0; i < updates.size(); ++i) before.push_back(rows.values(i));
  rows.Update(gradients);
  for (size_t i = 0; i < updates.size(); ++i) {
    std::vector<float> m(kDim), v(kDim);
    const float* const in[] = {m.data(), v.data()};
    float* const out[] = {m.data(), v.data()};
    adam->Update({before[i], in, EncodedGradient(gradients.data()), absl::MakeSpan(before[i]), out,
                  kRowRate, updates[i]});
    for (size_t e = 0; e < kDim; ++e) EXPECT_NEAR(rows.row(i)[e], before[i][e], 1e-6) << updates[i];
  }
  EXPECT_EQ(rows.updates().back(), 65535);
}

TEST(FtrlRowsTest, ARateOfZeroChangesNothing) {
  const auto optimizer = CreateRows("ftrl {}", 3);
  TestRows rows(*optimizer, 2, 1);
  const std::vector<uint32_t> before = rows.MemoryBits();
  const std::vector<float> gradients(6, 1.0f);
  RowBatch batch =
      rows.Batch({WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(gradients.data()),
                  3 * sizeof(float)});
  batch.learning_rate = 0;
  optimizer->Update(batch);
  EXPECT_EQ(rows.MemoryBits(), before);
}

TEST(RateFactorTest, MultipliesTheRatesOfRows) {
  const std::vector<float> gradients = RandomVector(8, 1u);
  const auto tenth = CreateRows("adagrad {}", 4, {.rate_factor = 0.5}),
             all = CreateRows("adagrad {}", 4);
  TestRows a(*tenth, 2, 1), b(*all, 2, 1);
  const RowGradients g = {WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(gradients.data()),
                          16};
  a.Update(g);
  RowBatch batch = b.Batch(g);
  batch.learning_rate = 0.5f * kRowRate;
  all->Update(batch);
  EXPECT_EQ(a.MemoryBits(), b.MemoryBits());
}

TEST(FrozenRowsTest, StayAsTheyAre) {
  const std::unique_ptr<RowOptimizer> frozen = CreateFrozenRows(3);
  EXPECT_THAT(frozen->slots(), IsEmpty());
  TestRows rows(*frozen, 2, 1);
  const std::vector<uint32_t> before = rows.MemoryBits();
  rows.Update(std::vector<float>(6, 1.0f));
  EXPECT_EQ(rows.MemoryBits(), before);
  const float* const pointers[] = {rows.row(0), rows.row(1)};
  std::vector<float> read(6);
  frozen->Read({pointers, {}, 0, kRowRate, read.data(), 3});
  EXPECT_EQ(std::vector<float>(read.begin() + 3, read.end()), rows.values(1));
}

TEST(CreateRowOptimizerTest, ErrorsNameTheField) {
  struct Error {
    const char* config;
    OptimizerAdjustment adjustment;
    const char* error;
  };
  const Error kErrors[] = {
      {"",
       {},
       "optimizer: expected one of sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl, "
       "row_wise_adagrad, found none"},
      {"row_wise_adagrad { initial_accumulator: -1 }",
       {},
       "optimizer.row_wise_adagrad.initial_accumulator: expected >= 0, found -1"},
      {"row_wise_adagrad { epsilon: 0 }",
       {},
       "optimizer.row_wise_adagrad.epsilon: expected > 0, found 0"},
      {"adamw { beta1: 0.9 beta2: 0.5 exact: true }",
       {},
       "optimizer.adamw.beta1: expected below the square root of beta2 with exact, found 0.9"},
      {"sgd {}",
       {.exact_weight_decay = true},
       "optimizer.weight_decay: expected > 0 with exact_weight_decay, found 0"},
  };
  for (const Error& e : kErrors) {
    EXPECT_EQ(CreateRowOptimizer(ParseAs<v1::OptimizerConfig>(e.config), e.adjustment, 4).status(),
              absl::InvalidArgumentError(e.error))
        << e.config;
  }
}

}  // namespace
}  // namespace keelson
