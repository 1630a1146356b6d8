#include "core/data/generated_pairs.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "core/data/open_datasets.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

const FeatureSpec kPairUser = {"user", {}, FeatureKind::kId};
const FeatureSpec kPairItem = {"item", {}, FeatureKind::kId};
const LabelSpec kLogProbability = {"item_log_probability"};

v1::DataConfig::GeneratedPairs PairsOf(const std::string& text) {
  v1::DataConfig::GeneratedPairs pairs;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &pairs)) << text;
  return pairs;
}

Batch ReadPairs(const std::string& text, const RecordSchema& schema, int64_t records,
                uint64_t seed = 1) {
  v1::DataConfig config;
  *config.mutable_generated_pairs() = PairsOf(text);
  config.mutable_generated_pairs()->set_eval_records(records);
  const auto data = OpenDatasets(config, schema, seed);
  EXPECT_TRUE(data.ok()) << data.status();
  std::vector<int64_t> all(records);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  EXPECT_TRUE(data->eval->Read(all, &batch).ok());
  return batch;
}

// How many items the user chooses more often than this one.
int64_t RankOf(const PairTruth& truth, uint32_t user, uint32_t item) {
  int64_t before = 0;
  for (uint32_t other = 0; other < truth.distribution().items; ++other) {
    before += truth.ProbabilityOf(user, other) > truth.ProbabilityOf(user, item) ? 1 : 0;
  }
  return before;
}

TEST(GeneratedPairsTest, TheBestRetrievalIsThatOfRecords) {
  constexpr int64_t kRecords = 5000;
  const Batch batch = ReadPairs("", {{kPairUser, kPairItem}, {}}, kRecords);
  const PairTruth truth((PairDistribution()));
  double recall = 0, ndcg = 0;
  for (int64_t i = 0; i < kRecords; ++i) {
    const int64_t rank = RankOf(truth, static_cast<uint32_t>(batch.features[0].ids[i]),
                                static_cast<uint32_t>(batch.features[1].ids[i]));
    if (rank >= 10) continue;
    recall += 1;
    ndcg += 1 / std::log2(rank + 2.0);
  }
  // Four standard errors; that of one record is at most a half.
  EXPECT_NEAR(recall / kRecords, kBestPairRecall, 4 * 0.5 / std::sqrt(kRecords));
  EXPECT_NEAR(ndcg / kRecords, kBestPairNdcg, 4 * 0.5 / std::sqrt(kRecords));
  const BestRetrieval best = truth.BestAt(10);
  EXPECT_NEAR(best.recall, kBestPairRecall, 5e-5);
  EXPECT_NEAR(best.ndcg, kBestPairNdcg, 5e-5);
  EXPECT_NEAR(truth.BestAt(1000).recall, 1, 1e-12);
}

TEST(GeneratedPairsTest, ChoicesHaveTheProbabilitiesOfTheFormula) {
  // Without popularity the ratio of two items' probabilities is that of the exponentials of their
  // products; half of the scale takes its square root.
  PairDistribution distribution = {.users = 3, .items = 5, .numbers = 2, .exponent = 0};
  const PairTruth full(distribution);
  distribution.scale = 0.5;
  const PairTruth half(distribution);
  const auto ratio = [](const PairTruth& truth, uint32_t user) {
    return truth.ProbabilityOf(user, 1) / truth.ProbabilityOf(user, 4);
  };
  for (uint32_t user = 0; user < 3; ++user) {
    EXPECT_GT(std::abs(std::log(ratio(full, user))), 0.1) << user;
    EXPECT_NEAR(std::log(ratio(full, user)), 2 * std::log(ratio(half, user)), 1e-5) << user;
  }
  // Without vectors' products popularity is all.
  distribution = {.users = 2, .items = 3, .scale = 0, .exponent = 2};
  const PairTruth popular(distribution);
  for (uint32_t item = 0; item < 3; ++item) {
    const double probability = 1 / ((item + 1.0) * (item + 1.0)) / (1 + 1 / 4.0 + 1 / 9.0);
    EXPECT_NEAR(popular.ProbabilityOf(1, item), probability, 1e-8);
    EXPECT_NEAR(popular.LogProbabilityOf(item), std::log(probability), 1e-6);
  }
}

TEST(GeneratedPairsTest, ItemsHaveTheirPlaces) {
  const PairTruth truth({.users = 2, .items = 3, .scale = 0, .exponent = 0});
  EXPECT_EQ(truth.ItemAt(1, 0), 0u);
  EXPECT_EQ(truth.ItemAt(1, 0x55555554), 0u);
  EXPECT_EQ(truth.ItemAt(1, 0x55555555), 1u);
  EXPECT_EQ(truth.ItemAt(1, 0xffffffff), 2u);
}

TEST(GeneratedPairsTest, UsersAndItemsComeAsOftenAsTheyShould) {
  constexpr int64_t kRecords = 40000;
  const std::string text = "users: 40 items: 20";
  const Batch batch = ReadPairs(text, {{kPairItem, kPairUser}, {kLogProbability}}, kRecords);
  const PairTruth truth(*PairDistributionOf(PairsOf(text)));
  std::vector<int64_t> users(40), items(20);
  for (int64_t i = 0; i < kRecords; ++i) {
    const uint64_t item = batch.features[0].ids[i];
    ++items.at(item);
    ++users.at(batch.features[1].ids[i]);
    ASSERT_EQ(batch.labels[0].data()[i], truth.LogProbabilityOf(static_cast<uint32_t>(item)));
  }
  const auto expect_share = [&](int64_t count, double share) {
    EXPECT_NEAR(static_cast<double>(count) / kRecords, share, 4.5 * std::sqrt(share / kRecords));
  };
  for (const int64_t count : users) expect_share(count, 1.0 / 40);
  double sum = 0;
  for (uint32_t item = 0; item < 20; ++item) {
    double mean = 0;
    for (uint32_t user = 0; user < 40; ++user) mean += truth.ProbabilityOf(user, item) / 40;
    EXPECT_NEAR(std::exp(truth.LogProbabilityOf(item)), mean, 1e-6);
    expect_share(items[item], mean);
    sum += mean;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(GeneratedPairsTest, RecordsDependOnSeedAndNumberAlone) {
  const Batch all = ReadPairs("", {{kPairUser, kPairItem}, {}}, 20);
  EXPECT_EQ(all.features[0].ids[3], 322u);
  EXPECT_EQ(all.features[1].ids[3], 263u);
  EXPECT_EQ(ReadPairs("", {{kPairItem}, {}}, 20).features[0].ids, all.features[1].ids);
  EXPECT_NE(ReadPairs("", {{kPairUser}, {}}, 20, 2).features[0].ids, all.features[0].ids);
  // Vectors are the same for every seed, so that the best figures are.
  FeatureSpec rows = kPairUser;
  rows.num_ids = 1000;
  EXPECT_EQ(ReadPairs("", {{rows}, {}}, 20).features[0].ids, all.features[0].ids);
}

TEST(GeneratedPairsTest, NumbersOutOfTheirBounds) {
  const auto expect_error = [](const std::string& text, const std::string& message) {
    const absl::Status status = PairDistributionOf(PairsOf(text)).status();
    EXPECT_EQ(status, absl::InvalidArgumentError("data.generated_pairs." + message));
  };
  expect_error("users: 1", "users: expected 2 to 1048576, found 1");
  expect_error("users: 1048577", "users: expected 2 to 1048576, found 1048577");
  expect_error("items: 1", "items: expected 2 to 65536 with 1000 users, found 1");
  expect_error("users: 2000 items: 40000",
               "items: expected 2 to 33554 with 2000 users, found 40000");
  expect_error("users: 200000", "users: expected 2 to 134217 with 500 items, found 200000");
  expect_error("numbers: 65", "numbers: expected 1 to 64, found 65");
  expect_error("numbers: -1", "numbers: expected 1 to 64, found -1");
  expect_error("scale: nan", "scale: expected 0 to 10, found nan");
  expect_error("exponent: -0.5", "exponent: expected 0 to 10, found -0.5");
}

TEST(GeneratedPairsTest, ModelsThatTakeSomethingElse) {
  const auto expect_error = [](const RecordSchema& schema, const std::string& message) {
    const absl::Status status = PairColumnsOf(schema, PairDistribution()).status();
    EXPECT_EQ(status, absl::InvalidArgumentError("generated pairs: expected " + message));
  };
  expect_error({{{"history", {}, FeatureKind::kId}}, {}},
               "the features \"user\" and \"item\", ids, found \"history\", any id");
  expect_error({{{"item", {}, FeatureKind::kBag}}, {}},
               "the features \"user\" and \"item\", ids, found \"item\", bag of any ids");
  expect_error({{{"item", {}, FeatureKind::kId, false, 499}}, {}},
               "embeddings of 500 rows or more for \"item\", found 499");
  expect_error({{kPairUser}, {{"item_log_probability", 2}}},
               "the label \"item_log_probability\", a number, found \"item_log_probability\" of 2 "
               "classes");
}

}  // namespace
}  // namespace keelson
