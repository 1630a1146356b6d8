#include "core/data/generated_visits.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"

namespace keelson {
namespace {

const FeatureSpec kUser = {"user", Shape({kVisitNumbers})};
const FeatureSpec kItem = {"item", Shape({kVisitNumbers})};
const LabelSpec kClicked = {"clicked", 2};
const LabelSpec kSpent = {"spent", 0};

Batch ReadVisits(const RecordSchema& schema, int64_t records) {
  const auto columns = VisitColumnsOf(schema);
  EXPECT_TRUE(columns.ok()) << columns.status();
  std::vector<int64_t> all(records);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  EXPECT_TRUE(
      NewGeneratedVisits(*columns, 1, DataSplit::kEval, 0, records)->Read(all, &batch).ok());
  return batch;
}

TEST(GeneratedVisitsTest, TheBestLossesAreThoseOfTheFormulas) {
  constexpr int64_t kRecords = 40000;
  const Batch batch = ReadVisits({{kUser, kItem}, {kClicked, kSpent}}, kRecords);
  double log_loss = 0, squares = 0;
  for (int64_t i = 0; i < kRecords; ++i) {
    const float* const u = batch.features[0].numbers.data() + i * kVisitNumbers;
    const float* const v = batch.features[1].numbers.data() + i * kVisitNumbers;
    const double affinity = u[0] * v[0] + u[1] * v[1] + u[2] * v[2] + u[3] * v[3];
    const double p = 1 / (1 + std::exp(0.5 - 3 * affinity));
    log_loss -= std::log(batch.labels[0].data()[i] == 1 ? p : 1 - p);
    squares += std::pow(batch.labels[1].data()[i] - (2 + u[0] + 1.5 * affinity), 2);
  }
  // Four deviations; that of the loss of one record is below 0.5.
  EXPECT_NEAR(log_loss / kRecords, kBestClickedLoss, 4 * 0.5 / 200);
  EXPECT_NEAR(squares / kRecords, kBestSpentLoss, 4 * kBestSpentLoss * std::sqrt(2) / 200);
}

TEST(GeneratedVisitsTest, AModelTakesColumnsInItsOrder) {
  const Batch all = ReadVisits({{kUser, kItem}, {kClicked, kSpent}}, 5);
  const Batch some = ReadVisits({{kItem}, {kSpent}}, 5);
  const Batch turned = ReadVisits({{kItem, kUser}, {kSpent, kClicked}}, 5);
  ASSERT_EQ(some.features.size(), 1u);
  EXPECT_EQ(some.features[0].numbers.span(), all.features[1].numbers.span());
  EXPECT_EQ(some.labels[0].span(), all.labels[1].span());
  EXPECT_EQ(turned.features[1].numbers.span(), all.features[0].numbers.span());
  EXPECT_EQ(turned.labels[1].span(), all.labels[0].span());
}

TEST(GeneratedVisitsTest, ClicksMayBeWeights) {
  const LabelSpec weights = {"clicked", 0, /*weighs=*/true};
  const Batch batch = ReadVisits({{kUser}, {kSpent, weights}}, 5);
  EXPECT_EQ(batch.labels[1].span(), ReadVisits({{kUser}, {kClicked}}, 5).labels[0].span());
}

TEST(GeneratedVisitsTest, HasNoOtherColumnsAndRecords) {
  const std::vector<std::pair<RecordSchema, std::string>> wrong = {
      {{{{"users", Shape({kVisitNumbers})}}, {kClicked}},
       "generated visits: expected the features \"user\" and \"item\", each [8], found \"users\" "
       "[8]"},
      {{{{"user", Shape({9})}}, {kClicked}},
       "generated visits: expected the features \"user\" and \"item\", each [8], found \"user\" "
       "[9]"},
      {{{kUser}, {{"clicked", 3}}},
       "generated visits: expected the labels \"clicked\", 0 or 1, and \"spent\", any number, "
       "found "
       "\"clicked\" of 3 classes"},
      {{{kUser}, {{"label", 0}}},
       "generated visits: expected the labels \"clicked\", 0 or 1, and \"spent\", any number, "
       "found "
       "\"label\" of 0 classes"},
      {{{kUser}, {kClicked, {"spent", 0, /*weighs=*/true}}},
       "generated visits: expected the labels \"clicked\", 0 or 1, and \"spent\", any number, "
       "found "
       "\"spent\" of 0 classes as weights"},
  };
  for (const auto& [schema, message] : wrong) {
    EXPECT_EQ(VisitColumnsOf(schema).status(), absl::InvalidArgumentError(message));
  }
  Batch batch;
  const auto visits =
      NewGeneratedVisits(*VisitColumnsOf({{kUser}, {kSpent}}), 1, DataSplit::kTrain, 0, 10);
  EXPECT_EQ(visits->Read({10}, &batch).code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace keelson
