// Sums whose gradients have an order are the same bit by bit, in whatever order these come.
#include "ps_server/units/round_sum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"
#include "ps_server/units/block.h"
#include "ps_server/units/row_round_sum.h"

namespace keelson {
namespace {

constexpr RoundId kSummed = {4, 1};
constexpr int64_t kSummedElements = 1500;
constexpr int kGradients = 4;

// Numbers of such different magnitudes that they round otherwise in another order of adding them. A
// quarter of them are large, at the same places in each gradient: those that top-k keeps.
std::vector<float> MixedNumbers(int gradient, int64_t count) {
  std::vector<float> numbers;
  for (int64_t e = 0; e < count; ++e) {
    const auto angle = static_cast<float>(e * 7 + gradient * 13);
    const int64_t exponent = (e + gradient) % 4 - (e % 4 == 0 ? 0 : 4);
    numbers.push_back(std::sin(angle) * std::pow(10.0f, static_cast<float>(exponent)));
  }
  return numbers;
}

float WeightOf(int gradient) { return static_cast<float>(gradient + 1); }

// The order in which gradients come, of all that there are; `visit` gets each.
template <typename Visit>
void ForEachArrival(Visit visit) {
  std::vector<int> arrival(kGradients);
  std::iota(arrival.begin(), arrival.end(), 0);
  do {
    visit(arrival);
  } while (std::next_permutation(arrival.begin(), arrival.end()));
}

class OrderedSumTest : public testing::TestWithParam<int> {
 protected:
  static WireFormat format() { return static_cast<WireFormat>(GetParam()); }

  // Returns the sum of gradients that come in this order, in fragments of their own.
  static std::vector<float> SumOf(const std::vector<int>& arrival, bool ordered) {
    RoundSum sum(kSummed, kSummedElements);
    for (size_t i = 0; i < arrival.size(); ++i) {
      const int gradient = arrival[i];
      const std::string bytes = EncodeGradient(format(), MixedNumbers(gradient, kSummedElements));
      const ByteRope rope = Fragmented(bytes + "behind", 700 + 50 * i, 3);
      ByteCursor cursor(rope);
      sum.Add({format(), &cursor}, WeightOf(gradient),
              ordered ? static_cast<uint32_t>(gradient) + 1 : 0);
      EXPECT_EQ(cursor.remaining(), 6u);
    }
    EXPECT_EQ(sum.contributions(), arrival.size());
    sum.AddKept();
    return {sum.elements().begin(), sum.elements().end()};
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, OrderedSumTest, testing::Range(0, kNumWireFormats),
                         [](const auto& info) {
                           return std::string(WireFormatName(static_cast<WireFormat>(info.param)));
                         });

TEST_P(OrderedSumTest, IsTheSameInEveryOrderOfArrival) {
  const std::vector<float> expected = SumOf({0, 1, 2, 3}, /*ordered=*/false);
  bool differs = false;
  ForEachArrival([&](const std::vector<int>& arrival) {
    EXPECT_EQ(SumOf(arrival, /*ordered=*/true), expected);
    differs = differs || SumOf(arrival, /*ordered=*/false) != expected;
  });
  EXPECT_TRUE(differs) << "the order of arrival makes no difference to these gradients";
}

TEST_P(OrderedSumTest, PlacesThatNobodyTakesAreSkipped) {
  const std::vector<float> expected = SumOf({0, 2, 3}, /*ordered=*/false);
  EXPECT_EQ(SumOf({3, 0, 2}, /*ordered=*/true), expected);
  EXPECT_EQ(SumOf({2, 3, 0}, /*ordered=*/true), expected);
}

// Whether the block adds up, applies and gives away the same.
TEST(OrderedBlockTest, CommitsAndShowsTheSameInEveryOrderOfArrival) {
  const std::unique_ptr<Optimizer> optimizer =
      *CreateOptimizer(OptimizerFromText("momentum { momentum: 0.9 }"));
  std::optional<std::vector<float>> first_sum;
  std::optional<std::vector<float>> first_values;
  ForEachArrival([&](const std::vector<int>& arrival) {
    AppliedSequences sequences;
    Block block(BlockContentRef(new BlockContent(kSummedElements, 1)), /*unit=*/0, &sequences);
    for (const int gradient : arrival) {
      const std::vector<float> numbers = MixedNumbers(gradient, kSummedElements);
      ByteRope rope;
      rope.AppendBorrowed(numbers.data(), numbers.size() * sizeof(float));
      ByteCursor cursor(rope);
      PushIdentity push = {static_cast<uint64_t>(gradient) + 1, /*sequence=*/1};
      push.order = static_cast<uint32_t>(gradient) + 1;
      EXPECT_EQ(block.Stage(push, kSummed, WeightOf(gradient), {WireFormat::kFloat32, &cursor}),
                StageResult::kAdded);
    }
    EXPECT_EQ(block.Contributions(kSummed), kGradients);
    std::vector<float> sum;
    block.ReadSum(kSummed, [&](const RoundSum* read) {
      sum.assign(read->elements().begin(), read->elements().end());
    });
    block.CommitRound(*optimizer, /*learning_rate=*/0.1f);
    const BlockContentRef content = block.Read();
    const std::vector<float> values(content->values.span().begin(), content->values.span().end());
    if (!first_sum.has_value()) first_sum = sum;
    if (!first_values.has_value()) first_values = values;
    EXPECT_EQ(sum, *first_sum);
    EXPECT_EQ(values, *first_values);
  });
}

// ---- Rows of tables.

constexpr size_t kRowDim = 3;

// Returns the sums of pushes that come in this order; push p has the rows of ids p to 4.
std::vector<float> RowMeansOf(const std::vector<int>& arrival, bool ordered) {
  RowRoundSum sum(kSummed, {kRowDim});
  for (const int push : arrival) {
    sum.BeginPush(WeightOf(push), ordered ? static_cast<uint32_t>(push) + 1 : 0);
    for (uint64_t id = static_cast<uint64_t>(push); id <= kGradients; ++id) {
      const std::vector<float> all = MixedNumbers(push, 100);
      sum.Add(0, {id}, absl::MakeConstSpan(all).subspan(id * kRowDim, kRowDim));
    }
    sum.EndPush();
  }
  std::vector<float> means;
  sum.VisitMeans(0, 100, [&](absl::Span<const uint64_t>, absl::Span<const float> rows) {
    means.insert(means.end(), rows.begin(), rows.end());
  });
  return means;
}

TEST(OrderedRowsTest, AreTheSameInEveryOrderOfArrival) {
  const std::vector<float> expected = RowMeansOf({0, 1, 2, 3}, /*ordered=*/false);
  EXPECT_EQ(expected.size(), (kGradients + 1) * kRowDim);
  bool differs = false;
  ForEachArrival([&](const std::vector<int>& arrival) {
    EXPECT_EQ(RowMeansOf(arrival, /*ordered=*/true), expected);
    differs = differs || RowMeansOf(arrival, /*ordered=*/false) != expected;
  });
  EXPECT_TRUE(differs) << "the order of arrival makes no difference to these rows";
}

}  // namespace
}  // namespace keelson
