#include "dashboard/api/model_predictor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/table_testing.h"
#include "core/data/columnar_writer.h"
#include "core/model/spec/model_config_testing.h"
#include "testing/tiny_model.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class ModelPredictorTest : public testing::Test {
 protected:
  absl::StatusOr<Prediction> Predict(const std::vector<float>& features) {
    return predictor_.Predict(config_, ExampleOf(features));
  }
  static Batch ExampleOf(const std::vector<float>& features) {
    Tensor numbers(Shape({1, static_cast<int64_t>(features.size())}));
    std::copy(features.begin(), features.end(), numbers.data());
    return MakeBatch(std::move(numbers), Tensor(Shape({1})));
  }
  // A snapshot of two embeddings of three and two ids, [0.1, 0.2, 0.3] and [-6, 20].
  void CommitIds(int64_t step) {
    const std::string prefix = directory_.SnapshotPrefix(step);
    const auto writer = NewWriter(prefix, 0, 1);
    const std::vector<float> users = {0.1f, 0.2f, 0.3f}, seen = {-6, 20};
    ASSERT_TRUE(writer->AddTensor("user_vector/embeddings", Shape({3, 1}), users).ok());
    ASSERT_TRUE(writer->AddTensor("seen_vector/embeddings", Shape({2, 1}), seen).ok());
    std::vector<BundleIndexEntry> entries;
    AppendEntries(writer.get(), &entries);
    ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries)).ok());
    ASSERT_TRUE(directory_.Commit(step, RetentionPolicy()).ok());
  }

  const std::string model_dir_ = FreshDirectory();
  const v1::TrainConfig config_ = TinyConfig(model_dir_);
  CheckpointDirectory directory_{FileSystem::Real(), model_dir_, Clock::Real()};
  ModelPredictor predictor_{model_dir_, /*threads=*/1, Clock::Real()};
};

TEST_F(ModelPredictorTest, AnswersWithTheNewestSnapshot) {
  EXPECT_EQ(Predict({1, 0}).status(),
            absl::NotFoundError("there is no snapshot yet that can be read"));
  CommitTinySnapshot(&directory_, 100, 0);
  auto prediction = Predict({1, 0});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step, 100);
  EXPECT_THAT(prediction->outputs, ElementsAre(0.5f, 0.5f));
  CommitTinySnapshot(&directory_, 200, 2);
  prediction = Predict({1, 0});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step, 200);
  const auto expected = static_cast<float>(1 / (1 + std::exp(-2.0)));
  EXPECT_THAT(prediction->outputs,
              ElementsAre(FloatNear(expected, 1e-6f), FloatNear(1 - expected, 1e-6f)));
}

TEST_F(ModelPredictorTest, PassesOverSnapshotsThatCannotBeRead) {
  CommitTinySnapshot(&directory_, 100, 1);
  CommitTinySnapshot(&directory_, 200, 2);
  DamageSnapshot(directory_.SnapshotPrefix(200));
  auto prediction = Predict({1, 0});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step, 100);
  CommitTinySnapshot(&directory_, 300, 2);
  prediction = Predict({1, 0});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step, 300);
}

TEST_F(ModelPredictorTest, WhenNoneCanBeRead) {
  CommitTinySnapshot(&directory_, 100, 1);
  DamageSnapshot(directory_.SnapshotPrefix(100));
  const absl::Status status = Predict({1, 0}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.ckpt-100"));
}

TEST_F(ModelPredictorTest, ASnapshotOfAnotherModel) {
  CommitTinySnapshot(&directory_, 100, 1);
  v1::TrainConfig other = config_;
  other.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(3);
  const absl::Status status = predictor_.Predict(other, ExampleOf({1, 0})).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'scores/kernel': the model expects [2, 3]"));
  EXPECT_TRUE(Predict({1, 0}).ok());
}

TEST_F(ModelPredictorTest, ExamplesThatDoNotFitTheModel) {
  CommitTinySnapshot(&directory_, 100, 1);
  EXPECT_EQ(Predict({1}).status(),
            absl::InvalidArgumentError("batch: features: expected the shape [1, 2], found [1, 1]"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(predictor_.Predict(v1::TrainConfig(), ExampleOf({1, 0})).status()));
}

TEST_F(ModelPredictorTest, ModelsOfIds) {
  v1::TrainConfig config = config_;
  *config.mutable_model() = ParseModel(
      R"pb(features {
             name: "user"
             id {}
           }
           features {
             name: "seen"
             bag { weighted: true }
           }
           layers {
             name: "user_vector"
             inputs: "user"
             embedding { rows: 3 dim: 1 }
           }
           layers {
             name: "seen_vector"
             inputs: "seen"
             embedding_bag { rows: 2 dim: 1 combiner: SUM }
           }
           layers {
             name: "score"
             add {}
             inputs: "user_vector"
             inputs: "seen_vector"
           }
           loss { kind: SIGMOID_CROSS_ENTROPY })pb");
  CommitIds(100);
  const auto predict = [&](uint64_t user) {
    Batch example;
    example.features.resize(2);
    example.features[0].ids = {user};
    example.features[1] = {{}, {1, 0}, {0, 2}, {0.5f, 2.0f}};
    return predictor_.Predict(config, std::move(example));
  };
  const auto prediction = predict(2);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  // 0.3 of the user, and 0.5 * 20 - 2 * 6 of what was seen.
  const auto expected = static_cast<float>(1 / (1 + std::exp(1.7)));
  EXPECT_THAT(prediction->outputs, ElementsAre(FloatNear(expected, 1e-6f)));
  EXPECT_TRUE(absl::IsInvalidArgument(predict(3).status()));
}

TEST_F(ModelPredictorTest, ModelsOfTables) {
  v1::TrainConfig config = config_;
  config.mutable_train()->set_seed(11);
  config.mutable_optimizer()->mutable_sgd();
  config.mutable_learning_rate()->set_base(0.1f);
  v1::InitialValuesConfig::Group* const group = config.mutable_initial_values()->add_groups();
  group->set_variables("users");
  group->mutable_constant()->set_value(0.75f);
  *config.mutable_model() = ParseModel(
      R"pb(features {
             name: "user"
             id {}
           }
           tables { name: "users" dim: 1 }
           layers {
             name: "score"
             inputs: "user"
             embedding { table: "users" }
           }
           loss { kind: SIGMOID_CROSS_ENTROPY })pb");
  TestTable users;
  users.spec = {"users", 1, {Initializer::Kind::kConstant, 0.75f}};
  users.seed = 11;
  users.rows[7].values = {2};
  WriteTables(FileSystem::Real(), directory_.SnapshotPrefix(100), {users}, 2);
  ASSERT_TRUE(directory_.Commit(100, RetentionPolicy()).ok());
  const auto predict = [&](uint64_t id) {
    Batch example;
    example.features.resize(1);
    example.features[0].ids = {id};
    return predictor_.Predict(config, std::move(example));
  };
  const auto probability = [&](uint64_t id) {
    const auto prediction = predict(id);
    EXPECT_TRUE(prediction.ok()) << prediction.status();
    return prediction.ok() ? prediction->outputs.front() : -1;
  };
  EXPECT_NEAR(probability(7), 1 / (1 + std::exp(-2.0)), 1e-6);
  // Without a row it has its initial values.
  EXPECT_NEAR(probability(~uint64_t{0}), 1 / (1 + std::exp(-0.75)), 1e-6);

  config.mutable_train()->set_seed(12);
  const absl::Status status = predict(7).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("users"));
}

// Two towers over tables, whose rows are the vectors.
class NearestItemsTest : public ModelPredictorTest {
 protected:
  NearestItemsTest() {
    towers_ = config_;
    towers_.mutable_train()->set_seed(11);
    towers_.mutable_optimizer()->mutable_sgd();
    towers_.mutable_learning_rate()->set_base(0.1f);
    auto* const group = towers_.mutable_initial_values()->add_groups();
    group->set_variables("*");
    group->mutable_constant()->set_value(0);
    *towers_.mutable_model() = ParseModel(
        R"pb(features {
               name: "user"
               id {}
             }
             features {
               name: "item"
               id {}
             }
             tables { name: "users" dim: 2 }
             tables { name: "items" dim: 2 }
             layers {
               name: "query"
               inputs: "user"
               embedding { table: "users" }
             }
             layers {
               name: "found"
               inputs: "item"
               embedding { table: "items" }
             }
             loss { kind: IN_BATCH_SOFTMAX queries: "query" items: "found" })pb");
    EXPECT_TRUE(CreateDirectories(model_dir_ + "/eval").ok());
  }

  void CommitTowers(int64_t step, float scale) {
    TestTable users, items;
    users.spec = {"users", 2, {}};
    users.seed = 11;
    users.rows[7].values = {scale, 1};
    items.spec = {"items", 2, {}};
    items.seed = 11;
    items.rows[1].values = {1, 0};
    items.rows[2].values = {0, 1};
    items.rows[3].values = {1, 1};
    items.rows[4].values = {0, 1};
    WriteTables(FileSystem::Real(), directory_.SnapshotPrefix(step), {users, items}, 1);
    ASSERT_TRUE(directory_.Commit(step, RetentionPolicy()).ok());
  }
  // A record of each of these items.
  void WriteItems(const std::vector<uint64_t>& ids) {
    const RecordSchema schema = InferModelSpec(towers_.model())->records;
    Batch batch;
    Resize(static_cast<int64_t>(ids.size()), schema, &batch);
    batch.features[0].ids.assign(ids.size(), 7);
    batch.features[1].ids = ids;
    auto writer =
        ColumnarWriter::Create(model_dir_ + "/eval/items.columnar", schema, FileSystem::Real());
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Append(batch).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  absl::StatusOr<NearestItems> Nearest(uint64_t user, size_t count,
                                       std::vector<size_t> exclude_features = {}) {
    Batch example;
    example.features.resize(2);
    example.features[0].ids = {user};
    example.features[1].ids = {3};
    RetrievalSpec retrieval;
    retrieval.item_feature = 1;
    retrieval.exclude_features = std::move(exclude_features);
    return predictor_.Nearest(towers_, retrieval, {true, false}, std::move(example), count);
  }
  static std::vector<std::pair<uint64_t, float>> Pairs(const absl::StatusOr<NearestItems>& found) {
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<std::pair<uint64_t, float>> pairs;
    if (!found.ok()) return pairs;
    for (const NearItem& item : found->nearest) pairs.emplace_back(item.id, item.score);
    return pairs;
  }

  v1::TrainConfig towers_;
};

using ::testing::Pair;

TEST_F(NearestItemsTest, TheGreatestProductsFirst) {
  CommitTowers(100, 2);
  WriteItems({4, 3, 2, 1});
  auto found = Nearest(7, 3);
  EXPECT_THAT(Pairs(found), ElementsAre(Pair(3, 3.0f), Pair(1, 2.0f), Pair(2, 1.0f)));
  EXPECT_EQ(found->items, 4);
  EXPECT_EQ(found->step, 100);
  // Where scores are equal, the lesser id comes first.
  EXPECT_THAT(Pairs(Nearest(7, 9)),
              ElementsAre(Pair(3, 3.0f), Pair(1, 2.0f), Pair(2, 1.0f), Pair(4, 1.0f)));
  EXPECT_THAT(Pairs(Nearest(7, 2, {1})), ElementsAre(Pair(1, 2.0f), Pair(2, 1.0f)));
  // The next snapshot has other vectors.
  CommitTowers(200, -2);
  found = Nearest(7, 1);
  EXPECT_THAT(Pairs(found), ElementsAre(Pair(2, 1.0f)));
  EXPECT_EQ(found->step, 200);
}

TEST_F(NearestItemsTest, ScoresThatAreNoNumbersAreLast) {
  CommitTowers(100, std::numeric_limits<float>::infinity());
  WriteItems({2, 1, 3});
  // Infinity times 0 is none.
  const auto pairs = Pairs(Nearest(7, 3));
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].first, 1u);
  EXPECT_EQ(pairs[1].first, 3u);
  EXPECT_TRUE(std::isnan(pairs[2].second));
}

TEST_F(NearestItemsTest, AUserWithoutARow) {
  CommitTowers(100, 2);
  WriteItems({1});
  EXPECT_EQ(Nearest(8, 1).status(),
            absl::InvalidArgumentError("features.user: expected an id that has a row in the table "
                                       "\"users\", found 8"));
}

TEST_F(NearestItemsTest, WithoutItemsOrASnapshot) {
  EXPECT_EQ(Nearest(7, 1).status(),
            absl::NotFoundError("there is no snapshot yet that can be read"));
  CommitTowers(100, 2);
  EXPECT_EQ(Nearest(7, 1).status(),
            absl::NotFoundError("the evaluator has not written yet which items there are"));
  WriteItems({1});
  EXPECT_THAT(Pairs(Nearest(7, 1)), ElementsAre(Pair(1, 2.0f)));
}

TEST_F(NearestItemsTest, ItemsThatCannotBeRead) {
  CommitTowers(100, 2);
  ASSERT_TRUE(WriteFileAtomically(model_dir_ + "/eval/items.columnar", "none").ok());
  EXPECT_THAT(std::string(Nearest(7, 1).status().message()), HasSubstr("items.columnar"));
}

}  // namespace
}  // namespace keelson
