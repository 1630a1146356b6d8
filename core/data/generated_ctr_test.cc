#include "core/data/generated_ctr.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/data/columns/value_hash.h"
#include "core/data/expected_auc.h"
#include "core/data/open_datasets.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;

const LabelSpec kCtrLabel = {"clicked", 2};
constexpr size_t kCtrFields = 8;
constexpr uint32_t kCtrValues = 20'000;

using CtrValues = std::array<uint32_t, kCtrFields>;

std::vector<FeatureSpec> AllFields(int64_t num_ids = 0) {
  std::vector<FeatureSpec> features;
  for (size_t i = 0; i < kCtrFields; ++i) {
    features.push_back({absl::StrCat("field", i), {}, FeatureKind::kId, false, num_ids});
  }
  return features;
}

Batch ReadCtr(const RecordSchema& schema, int64_t records, uint64_t seed = 1) {
  v1::DataConfig config;
  config.mutable_generated_ctr()->set_eval_records(records);
  const auto data = OpenDatasets(config, schema, seed);
  EXPECT_TRUE(data.ok()) << data.status();
  std::vector<int64_t> all(records);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  EXPECT_TRUE(data->eval->Read(all, &batch).ok());
  return batch;
}

// The values behind the ids of a batch of all fields.
std::vector<CtrValues> ValuesOf(const Batch& batch) {
  const CtrTruth truth((CtrDistribution()));
  std::vector<CtrValues> values(batch.size());
  for (size_t field = 0; field < kCtrFields; ++field) {
    std::map<uint64_t, uint32_t> by_id;
    for (uint32_t value = 0; value < kCtrValues; ++value) {
      by_id[truth.HashOf(field, value)] = value;
    }
    for (int64_t i = 0; i < batch.size(); ++i) {
      values[i][field] = by_id.at(batch.features[field].ids[i]);
    }
  }
  return values;
}

TEST(GeneratedCtrTest, GoldenIds) {
  const CtrTruth truth((CtrDistribution()));
  EXPECT_EQ(truth.HashOf(0, 0), 0xb7705a910a7fb4c3u);
  EXPECT_EQ(truth.HashOf(7, 19999), 0x40663e2da114ef67u);
}

TEST(GeneratedCtrTest, TheBestScoresAreThoseOfTheFormula) {
  constexpr int64_t kRecords = 60000;
  const Batch batch = ReadCtr({AllFields(), {kCtrLabel}}, kRecords);
  const CtrTruth truth((CtrDistribution()));
  std::vector<std::pair<float, double>> best, additive;
  double clicks = 0, labels = 0, entropy = 0, log_loss = 0;
  const std::vector<CtrValues> values = ValuesOf(batch);
  for (int64_t i = 0; i < kRecords; ++i) {
    const float logit = truth.LogitOf(values[i]);
    const double p = 1 / (1 + std::exp(-static_cast<double>(logit)));
    const bool clicked = batch.labels[0].data()[i] == 1;
    best.emplace_back(logit, p);
    additive.emplace_back(truth.AdditiveOf(values[i]), p);
    clicks += p;
    labels += clicked ? 1 : 0;
    entropy -= p * std::log(p) + (1 - p) * std::log(1 - p);
    log_loss -= std::log(clicked ? p : 1 - p);
  }
  // Four standard errors; those of one record are below 0.2, 0.5, 0.25 and 0.5.
  const double root = std::sqrt(static_cast<double>(kRecords));
  EXPECT_NEAR(clicks / kRecords, kCtrClicks, 4 * 0.2 / root);
  EXPECT_NEAR(labels / kRecords, kCtrClicks, 4 * 0.5 / root);
  EXPECT_NEAR(entropy / kRecords, kBestCtrLoss, 4 * 0.25 / root);
  EXPECT_NEAR(log_loss / kRecords, kBestCtrLoss, 4 * 0.5 / root);
  EXPECT_NEAR(ExpectedAuc(best), kBestCtrAuc, 0.004);
  EXPECT_NEAR(ExpectedAuc(additive), kBestAdditiveCtrAuc, 0.004);
}

TEST(GeneratedCtrTest, LogitsHaveTheProductsOfAllPairs) {
  const CtrTruth truth((CtrDistribution()));
  // In a record that differs from another in two fields the products of these change together:
  // what the sum of both single changes lacks is the product of the differences.
  const CtrValues base = {1, 2, 3, 4, 5, 6, 7, 8};
  CtrValues first = base, second = base, both = base;
  first[2] = both[2] = 100;
  second[5] = both[5] = 200;
  const float product =
      truth.LogitOf(both) - truth.LogitOf(first) - truth.LogitOf(second) + truth.LogitOf(base);
  EXPECT_GT(std::abs(product), 1e-3f);
  EXPECT_NEAR(truth.WeightsOf(both) - truth.WeightsOf(first) - truth.WeightsOf(second) +
                  truth.WeightsOf(base),
              0, 1e-5);
}

TEST(GeneratedCtrTest, ValuesHaveTheFrequenciesOfTheFormula) {
  constexpr int64_t kRecords = 40000;
  const std::vector<CtrValues> values = ValuesOf(ReadCtr({AllFields(), {kCtrLabel}}, kRecords));
  double sum = 0;
  for (uint32_t value = 0; value < kCtrValues; ++value) sum += std::pow(value + 1.0, -1.05);
  for (const size_t field : {size_t{0}, kCtrFields - 1}) {
    std::vector<int64_t> counts(kCtrValues);
    for (const CtrValues& record : values) ++counts[record[field]];
    for (uint32_t value = 0; value < 20; ++value) {
      const double share = std::pow(value + 1.0, -1.05) / sum;
      EXPECT_NEAR(static_cast<double>(counts[value]) / kRecords, share,
                  4.5 * std::sqrt(share / kRecords));
    }
  }
  const CtrTruth truth((CtrDistribution()));
  EXPECT_EQ(truth.ValueAt(0), 0u);
  EXPECT_EQ(truth.ValueAt(0xffffffff), kCtrValues - 1);
}

TEST(GeneratedCtrTest, AModelTakesFeaturesInItsOrder) {
  const std::vector<FeatureSpec> fields = AllFields();
  const Batch all = ReadCtr({fields, {kCtrLabel}}, 20);
  const Batch some = ReadCtr({{fields[5], fields[0]}, {}}, 20);
  EXPECT_EQ(some.features[0].ids, all.features[5].ids);
  EXPECT_EQ(some.features[1].ids, all.features[0].ids);
  EXPECT_TRUE(some.labels.empty());
  EXPECT_NE(ReadCtr({fields, {kCtrLabel}}, 20, 2).features[0].ids, all.features[0].ids);
}

TEST(GeneratedCtrTest, EmbeddingsWithRowsGetBuckets) {
  const Batch all = ReadCtr({AllFields(), {kCtrLabel}}, 20);
  const Batch buckets = ReadCtr({AllFields(1000), {kCtrLabel}}, 20);
  EXPECT_THAT(buckets.features[3].ids, Each(Lt(1000u)));
  EXPECT_EQ(buckets.features[3].ids[7], IdOfHash(all.features[3].ids[7], 1000));
}

TEST(GeneratedCtrTest, AdditiveLogitsAreTheMeansOverTheOtherFields) {
  // Of two fields, the mean over all values of the other one can be computed.
  CtrDistribution distribution;
  distribution.fields = 2;
  distribution.values = 50;
  const CtrTruth truth(distribution);
  double shares = 0;
  for (int r = 1; r <= 50; ++r) shares += std::pow(r, -distribution.exponent);
  const auto mean_with = [&](uint32_t value) {
    double mean = 0;
    for (uint32_t other = 0; other < 50; ++other) {
      mean +=
          std::pow(other + 1.0, -distribution.exponent) / shares * truth.LogitOf({value, other});
    }
    return mean;
  };
  EXPECT_NEAR(truth.AdditiveOf({7, 3}) - truth.AdditiveOf({20, 3}), mean_with(7) - mean_with(20),
              1e-5);
}

TEST(GeneratedCtrTest, OtherDistributions) {
  v1::DataConfig config;
  auto* const drawn = config.mutable_generated_ctr();
  drawn->set_fields(20);
  drawn->set_values(10);
  drawn->set_bias(-6);
  drawn->set_vector_stddev(0);
  drawn->set_train_records(5000);
  const auto data = OpenDatasets(config, {{{"field19", {}, FeatureKind::kId}}, {kCtrLabel}}, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<int64_t> all(5000);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  ASSERT_TRUE(data->train->Read(all, &batch).ok());
  EXPECT_EQ(std::set<uint64_t>(batch.features[0].ids.begin(), batch.features[0].ids.end()).size(),
            10u);
  double clicks = 0;
  for (const int64_t i : all) clicks += batch.labels[0].data()[i];
  EXPECT_GT(clicks, 0);
  EXPECT_LT(clicks / 5000, 0.2);
}

TEST(GeneratedCtrTest, NumbersOutOfTheirBounds) {
  const auto expect_error = [](const std::string& text, const std::string& message) {
    v1::DataConfig::GeneratedCtr config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
    const absl::Status status = CtrDistributionOf(config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
  };
  expect_error("fields: 1", "data.generated_ctr.fields: expected 2 to 64, found 1");
  expect_error("fields: 65", "data.generated_ctr.fields: expected 2 to 64, found 65");
  expect_error("fields: 64 values: 2000000",
               "data.generated_ctr.values: expected 2 to 1048576 with 64 fields, found 2000000");
  expect_error("values: 1",
               "data.generated_ctr.values: expected 2 to 8388608 with 8 fields, found 1");
  expect_error("exponent: -1", "data.generated_ctr.exponent: expected 0 to 10, found -1");
  expect_error("weight_stddev: nan",
               "data.generated_ctr.weight_stddev: expected 0 to 10, found nan");
  expect_error("vector_stddev: 11", "data.generated_ctr.vector_stddev: expected 0 to 10, found 11");
  expect_error("bias: -11", "data.generated_ctr.bias: expected -10 to 10, found -11");
}

TEST(GeneratedCtrTest, ModelsThatTakeSomethingElse) {
  const auto expect_error = [](const RecordSchema& schema, const std::string& text) {
    const absl::Status status = CtrColumnsOf(schema, kCtrFields).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  expect_error({{{"field8", {}, FeatureKind::kId}}, {kCtrLabel}}, "\"field0\" to \"field7\"");
  expect_error({{{"field1", {}, FeatureKind::kBag}}, {kCtrLabel}}, "found \"field1\"");
  expect_error({AllFields(), {{"label", 2}}}, "expected the label \"clicked\"");
  expect_error({AllFields(), {kCtrLabel, kCtrLabel}}, "expected the label \"clicked\"");
}

}  // namespace
}  // namespace keelson
