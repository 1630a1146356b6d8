#include "core/scoring/retrieval_tally.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/random.h"
#include "core/table/row_id.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using Kind = MetricSpec::Kind;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The features of a record are its user, its item and what was seen before, a bag.
constexpr size_t kUser = 0, kItem = 1, kSeen = 2;

struct Choice {
  uint64_t user = 0;
  uint64_t item = 0;
  std::vector<uint64_t> seen = {};
};

Batch BatchOfChoices(absl::Span<const Choice> pairs) {
  Batch batch;
  batch.features.resize(3);
  batch.features[kSeen].offsets = {0};
  for (const Choice& pair : pairs) {
    batch.features[kUser].ids.push_back(pair.user);
    batch.features[kItem].ids.push_back(pair.item);
    std::vector<uint64_t>& seen = batch.features[kSeen].ids;
    seen.insert(seen.end(), pair.seen.begin(), pair.seen.end());
    batch.features[kSeen].offsets.push_back(static_cast<int64_t>(seen.size()));
  }
  return batch;
}

std::vector<MetricSpec> Metrics(const RetrievalSpec& spec, int64_t k) {
  std::vector<MetricSpec> metrics;
  for (const Kind kind : {Kind::kRetrievalRecall, Kind::kRetrievalHitRate, Kind::kRetrievalNdcg}) {
    metrics.push_back({.kind = kind, .k = k, .retrieval = spec});
  }
  return metrics;
}

// A user's score of an item.
using ScoreFunction = float (*)(uint64_t user, uint64_t item);

std::map<std::string, double> RetrievalOf(const std::vector<MetricSpec>& metrics,
                                          absl::Span<const Choice> pairs, ScoreFunction score,
                                          size_t batch_size = 7) {
  RetrievalTally tally(metrics);
  const auto batches = [&](auto use) {
    for (size_t i = 0; i < pairs.size(); i += batch_size)
      use(BatchOfChoices(pairs.subspan(i, batch_size)));
  };
  // An item's vector is its id, [1].
  batches([&](const Batch& batch) {
    std::vector<float> vectors;
    for (const uint64_t item : batch.features[kItem].ids) {
      vectors.push_back(static_cast<float>(item));
    }
    tally.AddItems(batch, vectors);
  });
  batches([&](const Batch& batch) {
    for (const RetrievalQuery& query : tally.TakeQueries(batch)) {
      std::vector<float> scores;
      for (const float item : tally.item_vectors()) {
        scores.push_back(score(batch.features[kUser].ids[query.row], static_cast<uint64_t>(item)));
      }
      tally.Add(query, scores);
    }
  });
  return tally.Values();
}

// By the definitions: all items in the order of their scores.
std::map<std::string, double> ByDefinition(const std::vector<MetricSpec>& metrics,
                                           absl::Span<const Choice> pairs, ScoreFunction score) {
  const RetrievalSpec& spec = metrics.front().retrieval;
  std::set<uint64_t> all;
  for (const Choice& pair : pairs) all.insert(pair.item);
  struct Query {
    const Choice* first = nullptr;
    std::set<uint64_t> items;
  };
  std::vector<Query> queries;
  for (const Choice& pair : pairs) {
    auto query = queries.end();
    if (spec.query_feature.has_value()) {
      query = std::find_if(queries.begin(), queries.end(),
                           [&](const Query& other) { return other.first->user == pair.user; });
    }
    if (query == queries.end()) query = queries.insert(query, {&pair, {}});
    query->items.insert(pair.item);
  }
  std::vector<double> sums(metrics.size());
  double counted = 0;
  for (Query& query : queries) {
    std::set<uint64_t> ranked = all;
    for (const uint64_t seen : query.first->seen) {
      if (spec.exclude_features.empty()) break;
      ranked.erase(seen);
      query.items.erase(seen);
    }
    if (query.items.empty()) continue;
    ++counted;
    std::vector<uint64_t> order(ranked.begin(), ranked.end());
    std::sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) {
      const float of_a = score(query.first->user, a), of_b = score(query.first->user, b);
      if (of_a != of_b) return of_a > of_b;
      return MixId(a, RetrievalTally::kTieSalt) < MixId(b, RetrievalTally::kTieSalt);
    });
    for (size_t m = 0; m < metrics.size(); ++m) {
      double found = 0, gain = 0, greatest = 0;
      for (size_t i = 0; i < order.size() && i < static_cast<size_t>(metrics[m].k); ++i) {
        if (i < query.items.size()) greatest += std::log(2) / std::log(2 + i);
        if (!query.items.contains(order[i])) continue;
        found += 1;
        gain += std::log(2) / std::log(2 + i);
      }
      switch (metrics[m].kind) {
        case Kind::kRetrievalRecall:
          sums[m] += found / static_cast<double>(query.items.size());
          break;
        case Kind::kRetrievalHitRate:
          sums[m] += found > 0 ? 1 : 0;
          break;
        default:
          sums[m] += gain / greatest;
      }
    }
  }
  std::map<std::string, double> values;
  for (size_t m = 0; m < metrics.size(); ++m) values[metrics[m].name()] = sums[m] / counted;
  return values;
}

// Many of them are equal.
float RandomScore(uint64_t user, uint64_t item) {
  return std::floor(UniformFloat(Philox(5, user, item)[0]) * 12);
}

std::vector<Choice> RandomPairs(size_t n) {
  std::vector<Choice> pairs;
  for (size_t i = 0; i < n; ++i) {
    const auto bits = Philox(6, 0, i);
    Choice& pair = pairs.emplace_back(Choice{bits[0] % 20, bits[1] % 50});
    for (uint64_t k = 0; k < bits[2] % 9; ++k) pair.seen.push_back(Philox(7, k, i)[0] % 60);
  }
  return pairs;
}

TEST(RetrievalTallyTest, ByHand) {
  // User 1 wants items 10 and 11, which are the second and the fourth of 10, 11, 20 and 21; user 2
  // wants the others, the first and the third.
  const std::vector<Choice> pairs = {{1, 10}, {2, 20}, {1, 11}, {2, 21}, {1, 10}};
  const ScoreFunction score = [](uint64_t user, uint64_t item) {
    const float scores[] = {3, 1, 4, 2};
    const size_t place = item % 10 + (item >= 20 ? 2 : 0);
    return user == 1 ? scores[place] : 2 * scores[place];
  };
  const auto expect = [&](int64_t k, double recall, double hit_rate, double ndcg) {
    const std::string at = "@" + std::to_string(k);
    auto values = RetrievalOf(Metrics({kItem, kUser}, k), pairs, score);
    EXPECT_DOUBLE_EQ(values.at("recall" + at), recall) << k;
    EXPECT_DOUBLE_EQ(values.at("hit_rate" + at), hit_rate) << k;
    EXPECT_DOUBLE_EQ(values.at("ndcg" + at), ndcg) << k;
  };
  const double second = 1 / std::log2(3), third = 0.5, fourth = 1 / std::log2(5);
  expect(1, 0.5 * 0.5, 0.5, 0.5);
  expect(2, 0.5, 1, (second + 1) / (1 + second) / 2);
  expect(4, 1, 1, (second + fourth + 1 + third) / (1 + second) / 2);
  expect(100, 1, 1, (second + fourth + 1 + third) / (1 + second) / 2);
}

TEST(RetrievalTallyTest, AgreesWithTheDefinitions) {
  const std::vector<Choice> pairs = RandomPairs(300);
  for (const RetrievalSpec& spec : std::vector<RetrievalSpec>{
           {kItem}, {kItem, kUser}, {kItem, {}, {kSeen}}, {kItem, kUser, {kSeen}}}) {
    for (const int64_t k : {1, 5, 20}) {
      const std::vector<MetricSpec> metrics = Metrics(spec, k);
      const auto values = RetrievalOf(metrics, pairs, RandomScore);
      for (const auto& [name, expected] : ByDefinition(metrics, pairs, RandomScore)) {
        EXPECT_NEAR(values.at(name), expected, 1e-12) << name;
        EXPECT_GT(expected, 0) << name;
      }
      EXPECT_EQ(RetrievalOf(metrics, pairs, RandomScore, 64), values) << "batches are not seen";
    }
  }
}

TEST(RetrievalTallyTest, EqualScoresAreARandomOrder) {
  // Item i comes (40 - i) times: the order of the records is not that of the items.
  std::vector<Choice> pairs;
  for (uint64_t item = 0; item < 40; ++item) {
    for (uint64_t i = item; i < 40; ++i) pairs.push_back({i, item});
  }
  const std::vector<MetricSpec> metrics = Metrics({kItem}, 10);
  const ScoreFunction same = [](uint64_t, uint64_t) { return 1.0f; };
  // A quarter of the items is found for each query, always the same.
  const double recall = RetrievalOf(metrics, pairs, same).at("recall@10");
  EXPECT_NEAR(recall, 0.25, 0.1);
  EXPECT_EQ(ByDefinition(metrics, pairs, same).at("recall@10"), recall);
}

TEST(RetrievalTallyTest, ScoresThatAreNoNumbers) {
  const std::vector<Choice> pairs = {{1, 1}, {1, 2}, {1, 3}};
  const std::vector<MetricSpec> metrics = Metrics({kItem}, 2);
  // Item 2 has none, and stands before the others: of these the first is found.
  EXPECT_DOUBLE_EQ(RetrievalOf(metrics, pairs,
                               [](uint64_t, uint64_t item) {
                                 return item == 2 ? kNan : -static_cast<float>(item);
                               })
                       .at("recall@2"),
                   1.0 / 3);
  EXPECT_EQ(RetrievalOf(Metrics({kItem}, 5), pairs, [](uint64_t, uint64_t) { return kNan; }),
            (std::map<std::string, double>{{"recall@5", 0}, {"hit_rate@5", 0}, {"ndcg@5", 0}}));
}

TEST(RetrievalTallyTest, AQueryWhoseItemsAreAllLeftOutIsNone) {
  const std::vector<MetricSpec> metrics = Metrics({kItem, kUser, {kSeen}}, 1);
  const ScoreFunction score = [](uint64_t, uint64_t item) { return static_cast<float>(item); };
  // User 2 has seen its item, and user 1 all others that stand before its own.
  const std::vector<Choice> pairs = {{1, 4, {5, 5, 99}}, {2, 5, {5}}};
  EXPECT_EQ(RetrievalOf(metrics, pairs, score),
            (std::map<std::string, double>{{"recall@1", 1}, {"hit_rate@1", 1}, {"ndcg@1", 1}}));
  EXPECT_TRUE(std::isnan(RetrievalOf(metrics, {{2, 5, {5}}}, score).at("recall@1")));
}

}  // namespace
}  // namespace keelson
