#include "core/data/generated_clicks.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"

namespace keelson {
namespace {

const FeatureSpec kUserId = {"user", {}, FeatureKind::kId, false, kClickUsers};
const FeatureSpec kItemId = {"item", {}, FeatureKind::kId, false, kClickItems};
const FeatureSpec kHistory = {"history", {}, FeatureKind::kBag, true, 1000};
const LabelSpec kClickLabel = {"clicked", 2};

Batch ReadClicks(const RecordSchema& schema, int64_t records) {
  const auto columns = ClickColumnsOf(schema);
  EXPECT_TRUE(columns.ok()) << columns.status();
  std::vector<int64_t> all(records);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  EXPECT_TRUE(
      NewGeneratedClicks(*columns, 1, DataSplit::kEval, 0, records)->Read(all, &batch).ok());
  return batch;
}

double ProbabilityOf(const Batch& batch, int64_t record) {
  const FeatureValues& history = batch.features[2];
  const ClickVector u = VectorOfUser(batch.features[0].ids[record]);
  const ClickVector v = VectorOfItem(batch.features[1].ids[record]);
  std::vector<double> sum(kClickNumbers);
  double weights = 0;
  for (int64_t k = history.offsets[record]; k < history.offsets[record + 1]; ++k) {
    const ClickVector of_item = VectorOfItem(history.ids[k]);
    for (int64_t d = 0; d < kClickNumbers; ++d) {
      sum[d] += double{history.weights[k]} * double{of_item[d]};
    }
    weights += double{history.weights[k]};
  }
  double affinity = 0;
  for (int64_t d = 0; d < kClickNumbers; ++d) {
    affinity += (double{u[d]} + (weights > 0 ? sum[d] / weights : 0)) * double{v[d]};
  }
  return 1 / (1 + std::exp(0.5 - affinity));
}

TEST(GeneratedClicksTest, TheBestLossIsThatOfTheFormula) {
  constexpr int64_t kRecords = 40000;
  const Batch batch = ReadClicks({{kUserId, kItemId, kHistory}, {kClickLabel}}, kRecords);
  double log_loss = 0, entropy = 0;
  for (int64_t i = 0; i < kRecords; ++i) {
    const double p = ProbabilityOf(batch, i);
    log_loss -= std::log(batch.labels[0].data()[i] == 1 ? p : 1 - p);
    entropy -= p * std::log(p) + (1 - p) * std::log(1 - p);
  }
  // Four deviations; that of the loss of one record is below 0.5, that of its entropy below 0.25.
  EXPECT_NEAR(log_loss / kRecords, kBestClickLoss, 4 * 0.5 / 200);
  EXPECT_NEAR(entropy / kRecords, kBestClickLoss, 4 * 0.25 / 200);
}

TEST(GeneratedClicksTest, IdsHaveTheFrequenciesOfTheFormulas) {
  constexpr int64_t kRecords = 40000;
  const Batch batch = ReadClicks({{kUserId, kItemId, kHistory}, {kClickLabel}}, kRecords);
  std::vector<double> users(kClickUsers), items(kClickItems), lengths(kMostHistory + 1);
  for (int64_t i = 0; i < kRecords; ++i) {
    ++users.at(batch.features[0].ids[i]);
    ++items.at(batch.features[1].ids[i]);
    ++lengths.at(batch.features[2].offsets[i + 1] - batch.features[2].offsets[i]);
  }
  const auto expect_share = [&](double found, double share) {
    // Five deviations: there are 157 shares.
    EXPECT_NEAR(found / kRecords, share, 5 * std::sqrt(share / kRecords));
  };
  for (const double user : users) expect_share(user, 1.0 / kClickUsers);
  for (const double length : lengths) expect_share(length, 1.0 / (kMostHistory + 1));
  for (int64_t i = 0; i < kClickItems; ++i) {
    expect_share(items[i], std::sqrt((static_cast<double>(i) + 1) / kClickItems) -
                               std::sqrt(static_cast<double>(i) / kClickItems));
  }
}

TEST(GeneratedClicksTest, AModelTakesFeaturesInItsOrder) {
  const Batch all = ReadClicks({{kUserId, kItemId, kHistory}, {kClickLabel}}, 20);
  const Batch some = ReadClicks({{kHistory, kUserId}, {kClickLabel}}, 20);
  ASSERT_EQ(some.features.size(), 2u);
  EXPECT_EQ(some.size(), 20);
  EXPECT_EQ(some.features[0].ids, all.features[2].ids);
  EXPECT_EQ(some.features[0].offsets, all.features[2].offsets);
  EXPECT_EQ(some.features[0].weights, all.features[2].weights);
  EXPECT_EQ(some.features[1].ids, all.features[0].ids);
  EXPECT_EQ(some.labels[0].span(), all.labels[0].span());
}

TEST(GeneratedClicksTest, AModelTakesLabelsInItsOrder) {
  const LabelSpec probability = {"item_log_probability"};
  const LabelSpec weight = {"clicked", 0, true};
  const Batch clicks = ReadClicks({{kItemId}, {kClickLabel}}, 20);
  const Batch both = ReadClicks({{kItemId}, {probability, weight}}, 20);
  ASSERT_EQ(both.labels.size(), 2u);
  EXPECT_EQ(both.labels[1].span(), clicks.labels[0].span());
  for (int64_t i = 0; i < 20; ++i) {
    const auto item = static_cast<double>(both.features[0].ids[i]);
    EXPECT_NEAR(std::exp(both.labels[0].data()[i]),
                std::sqrt((item + 1) / kClickItems) - std::sqrt(item / kClickItems), 1e-6);
  }
  EXPECT_TRUE(ReadClicks({{kItemId}, {}}, 20).labels.empty());
}

TEST(GeneratedClicksTest, ABatchThatIsReadAgainHasNothingOfBefore) {
  const auto clicks =
      NewGeneratedClicks({{ClickColumns::Feature::kHistory}, {}}, 1, DataSplit::kTrain, 0, 100);
  Batch batch, fresh;
  ASSERT_TRUE(clicks->Read({1, 2, 3}, &batch).ok());
  ASSERT_TRUE(clicks->Read({4, 5}, &batch).ok());
  ASSERT_TRUE(clicks->Read({4, 5}, &fresh).ok());
  EXPECT_EQ(batch.features[0].ids, fresh.features[0].ids);
  EXPECT_EQ(batch.features[0].offsets, fresh.features[0].offsets);
  EXPECT_EQ(batch.features[0].weights, fresh.features[0].weights);
}

TEST(GeneratedClicksTest, HasNoOtherColumnsAndRecords) {
  const std::string kinds =
      "generated clicks: expected the features \"user\" and \"item\", ids, and \"history\", a "
      "weighted bag, found ";
  const std::string labels =
      "generated clicks: expected the labels \"clicked\", 0 or 1, and \"item_log_probability\", a "
      "number, found ";
  const std::vector<std::pair<RecordSchema, std::string>> wrong = {
      {{{{"users", {}, FeatureKind::kId, false, 100}}, {kClickLabel}},
       kinds + "\"users\", id of 100"},
      {{{{"user", Shape({8})}}, {kClickLabel}}, kinds + "\"user\", [8]"},
      {{{{"history", {}, FeatureKind::kBag, false, 50}}, {kClickLabel}},
       kinds + "\"history\", bag of 50 ids"},
      {{{{"user", {}, FeatureKind::kId, false, 99}}, {kClickLabel}},
       "generated clicks: expected embeddings of 100 rows or more for \"user\", found 99"},
      {{{kUserId}, {{"label", 2}}}, labels + "\"label\" of 2 classes"},
      {{{kUserId}, {{"item_log_probability", 0, true}}},
       labels + "\"item_log_probability\" of 0 classes as weights"},
  };
  for (const auto& [schema, message] : wrong) {
    EXPECT_EQ(ClickColumnsOf(schema).status(), absl::InvalidArgumentError(message));
  }
  Batch batch;
  const auto clicks =
      NewGeneratedClicks({{ClickColumns::Feature::kUser}, {}}, 1, DataSplit::kTrain, 0, 10);
  EXPECT_EQ(clicks->Read({10}, &batch).code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace keelson
