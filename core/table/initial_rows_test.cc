#include "core/table/initial_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/table/row_id.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr Initializer kUniform = {Initializer::Kind::kUniform, -2, 3};
constexpr Initializer kNormal = {Initializer::Kind::kNormal, 1, 2};
constexpr Initializer kTruncated = {Initializer::Kind::kTruncatedNormal, 1, 2};
constexpr uint64_t kSeed = 7;

std::vector<float> Row(const InitialRows& rows, uint64_t id, size_t dim) {
  std::vector<float> row(dim);
  rows.Fill(id, absl::MakeSpan(row));
  return row;
}

InitialRows Of(const Initializer& initializer, uint64_t seed = kSeed,
               absl::string_view table = "users") {
  return InitialRows(initializer, seed, TableSalt(table));
}

TEST(InitialRowsTest, AConstantFillsTheRow) {
  EXPECT_EQ(Row(Of({Initializer::Kind::kConstant, 0.5f}), 3, 3),
            (std::vector<float>{0.5f, 0.5f, 0.5f}));
}

TEST(InitialRowsTest, AUniformElementIsAWordOfPhilox) {
  constexpr uint64_t kId = 0xfedcba9876543210;
  for (size_t dim = 1; dim <= 70; ++dim) {
    const std::vector<float> row = Row(Of(kUniform), kId, dim);
    for (size_t element = 0; element < dim; ++element) {
      const auto words = Philox(MixId(kSeed, TableSalt("users")), kId, element / 4);
      ASSERT_EQ(row[element], -2 + 5 * UniformFloat(words[element % 4])) << dim << " " << element;
    }
  }
}

// Snapshots hold no rows that nobody has changed, so these numbers are part of their contents.
TEST(InitialRowsTest, WhatIsComputedNowIsComputedByEveryLaterBuild) {
  const uint64_t kId = ~uint64_t{0} - 1;
  for (const auto& [initializer, expected] :
       std::vector<std::pair<Initializer, std::vector<float>>>{
           {kUniform, {1.48040295f, 0.260946751f}},
           {kNormal, {-0.0214018971f, 3.0407691f}},
           {kTruncated, {-0.0214018971f, 3.0407691f}}}) {
    const std::vector<float> row = Row(Of(initializer), kId, 5);
    EXPECT_EQ(row[0], expected[0]);
    EXPECT_EQ(row[4], expected[1]);
  }
}

TEST(InitialRowsTest, ARowDependsOnIdTableAndSeedAlone) {
  for (const Initializer& initializer : {kUniform, kNormal, kTruncated}) {
    const InitialRows rows = Of(initializer);
    const std::vector<float> first = Row(rows, 1, 33), second = Row(rows, 2, 33);
    EXPECT_EQ(Row(rows, 2, 33), second);
    EXPECT_EQ(Row(Of(initializer), 1, 33), first);
    EXPECT_NE(first, second);
    EXPECT_NE(first, Row(Of(initializer, kSeed + 1), 1, 33));
    EXPECT_NE(first, Row(Of(initializer, kSeed, "items"), 1, 33));
  }
}

// Kolmogorov and Smirnov's distance between values and a continuous distribution, times the root of
// their number. Samples of that distribution exceed 1.95 once in 1000 times.
template <typename Cdf>
double Distance(std::vector<float> values, Cdf cdf) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double below = static_cast<double>(i) / count;
    const double p = cdf(values[i]);
    distance = std::max({distance, p - below, below + 1 / count - p});
  }
  return distance * std::sqrt(count);
}

// One element of each of many rows, and all elements of one row.
std::vector<std::vector<float>> Samples(const Initializer& initializer) {
  const InitialRows rows = Of(initializer);
  std::vector<std::vector<float>> samples(4);
  for (uint64_t id = 0; id < 5000; ++id) {
    const std::vector<float> row = Row(rows, id, 4);
    for (size_t element : {0, 1, 3}) samples[element].push_back(row[element]);
  }
  samples[2] = Row(rows, 0, 5000);
  return samples;
}

double NormalCdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

TEST(InitialRowsTest, ValuesHaveTheirDistribution) {
  constexpr double kLimit = 1.95;
  for (const auto& sample : Samples(kUniform)) {
    EXPECT_LT(Distance(sample, [](double x) { return (x + 2) / 5; }), kLimit);
  }
  for (const auto& sample : Samples(kNormal)) {
    EXPECT_LT(Distance(sample, [](double x) { return NormalCdf((x - 1) / 2); }), kLimit);
  }
  const double below = NormalCdf(-2);
  for (const auto& sample : Samples(kTruncated)) {
    const auto cdf = [&](double x) { return (NormalCdf((x - 1) / 2) - below) / (1 - 2 * below); };
    EXPECT_LT(Distance(sample, cdf), kLimit);
    EXPECT_GE(*std::min_element(sample.begin(), sample.end()), -3);
    EXPECT_LE(*std::max_element(sample.begin(), sample.end()), 5);
  }
}

TEST(InitialRowsTest, ElementsOfAPairAreIndependent) {
  const InitialRows rows = Of(kNormal);
  double sum = 0;
  constexpr int kRows = 10000;
  for (uint64_t id = 0; id < kRows; ++id) {
    const std::vector<float> row = Row(rows, id, 2);
    sum += (row[0] - 1) / 2 * (row[1] - 1) / 2;
  }
  EXPECT_NEAR(sum / kRows, 0, 4 / std::sqrt(kRows));
}

}  // namespace
}  // namespace keelson
