#include "evaluator/retrieval_scorer.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/random.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/config/train_config.h"
#include "core/data/open_datasets.h"
#include "core/device/factory/device_factory.h"
#include "evaluator/snapshot_scorer.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

constexpr size_t kUsers = 30, kItems = 20, kDim = 4;

// Embeddings are random.
constexpr char kTowers[] = R"pb(
  model {
    features {
      name: "user"
      id {}
    }
    features {
      name: "item"
      id {}
    }
    layers {
      name: "query"
      inputs: "user"
      embedding { rows: 30 dim: 4 }
    }
    layers {
      name: "found"
      inputs: "item"
      embedding { rows: 20 dim: 4 }
    }
    loss { kind: IN_BATCH_SOFTMAX queries: "query" items: "found" temperature: 0.5 }
  }
  optimizer { sgd {} }
  learning_rate { base: 0.1 }
  data { generated_pairs { users: 30 items: 20 eval_records: 100 } }
  train { batch_size: 8 epochs: 1 }
  checkpoint { model_dir: "unused" save_steps: 10 }
  evaluation {
    batch_size: 16
    metrics { accuracy {} }
    metrics { retrieval { measure: RECALL k: 3 item_feature: "item" } }
    metrics { retrieval { measure: HIT_RATE k: 2 item_feature: "item" query_feature: "user" } }
  })pb";

std::vector<float> RandomRows(uint64_t seed, size_t rows) {
  std::vector<float> values;
  for (size_t i = 0; i < rows * kDim; ++i) {
    values.push_back(UniformFloat(Philox(seed, 0, i)[0]) - 0.5f);
  }
  return values;
}

// Which of the items, that are among those of the records, have the highest products.
std::vector<uint64_t> Ranked(absl::Span<const float> user, const std::vector<float>& items,
                             std::vector<uint64_t> of_records) {
  const auto product = [&](uint64_t item) {
    return std::inner_product(user.begin(), user.end(),
                              items.begin() + static_cast<int64_t>(item * kDim), 0.0);
  };
  std::sort(of_records.begin(), of_records.end(),
            [&](uint64_t a, uint64_t b) { return product(a) > product(b); });
  of_records.erase(std::unique(of_records.begin(), of_records.end()), of_records.end());
  return of_records;
}

TEST(RetrievalScorerTest, RanksAllItemsOfTheRecordsForEachQuery) {
  v1::TrainConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kTowers, &config));
  ASSERT_TRUE(FinalizeTrainConfig(&config).ok());
  const auto device = *CreateDevice("cpu", {.threads = 1});
  const auto spec = *InferModelSpec(config.model());
  const auto data = *OpenDatasets(config.data(), spec.records, 1);
  const std::vector<float> users = RandomRows(1, kUsers), items = RandomRows(2, kItems);
  const std::string prefix = FreshDirectory() + "/model.ckpt-7";
  std::vector<BundleIndexEntry> entries;
  auto writer = NewWriter(prefix, 0, 1);
  ASSERT_TRUE(writer->AddTensor("found/embeddings", Shape({kItems, kDim}), items).ok());
  ASSERT_TRUE(writer->AddTensor("query/embeddings", Shape({kUsers, kDim}), users).ok());
  AppendEntries(writer.get(), &entries);
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries)).ok());

  const ManualClock clock;
  const StopSignal stop;
  const auto scorer = SnapshotScorer::Create(config, device.get(), data.eval.get(), &clock, &stop);
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  const auto scored = (*scorer)->Score({7, prefix, absl::Time()});
  ASSERT_TRUE(scored.ok()) << scored.status();

  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  ASSERT_TRUE(data.eval->Read(all, &batch).ok());
  double found = 0, hits = 0;
  std::map<uint64_t, bool> hit_of_user;
  for (size_t i = 0; i < 100; ++i) {
    const uint64_t user = batch.features[0].ids[i], item = batch.features[1].ids[i];
    const std::vector<uint64_t> ranked =
        Ranked(absl::MakeSpan(users).subspan(user * kDim, kDim), items, batch.features[1].ids);
    const auto rank = std::find(ranked.begin(), ranked.end(), item) - ranked.begin();
    found += rank < 3 ? 1 : 0;
    hit_of_user[user] |= rank < 2;
  }
  for (const auto& [user, hit] : hit_of_user) hits += hit ? 1 : 0;
  const std::map<std::string, double>& metrics = scored->record.metrics;
  EXPECT_DOUBLE_EQ(metrics.at("recall@3"), found / 100);
  EXPECT_DOUBLE_EQ(metrics.at("hit_rate@2"), hits / static_cast<double>(hit_of_user.size()));
  EXPECT_EQ(metrics.count("accuracy"), 1u);
  EXPECT_EQ(metrics.size(), 4u) << "with the loss";
  const std::set<uint64_t> distinct(batch.features[1].ids.begin(), batch.features[1].ids.end());
  const auto report = nlohmann::json::parse(scored->report, nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(report["retrieval"][0]["metrics"], (std::vector<std::string>{"recall@3"}));
  EXPECT_EQ(report["retrieval"][0]["items"], distinct.size());
  EXPECT_EQ(report["retrieval"][0]["queries"], 100);
  EXPECT_EQ(report["retrieval"][1]["metrics"], (std::vector<std::string>{"hit_rate@2"}));
  EXPECT_EQ(report["retrieval"][1]["queries"], hit_of_user.size());
  EXPECT_GT(found, 0);
  EXPECT_LT(found, 100);
}

}  // namespace
}  // namespace keelson
