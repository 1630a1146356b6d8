#include "core/model/spec/metrics.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/model/spec/model_config_testing.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::Pair;

ModelSpec ModelWith(LossKind loss, int64_t output_size) {
  ModelSpec model;
  model.losses.push_back({.kind = loss, .outputs = output_size});
  return model;
}

absl::StatusOr<std::vector<MetricSpec>> Infer(const std::string& text, const ModelSpec& model) {
  v1::EvaluationConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return InferMetrics(config, model);
}

std::vector<std::string> Names(const std::vector<MetricSpec>& metrics) {
  std::vector<std::string> names;
  for (const MetricSpec& metric : metrics) names.push_back(metric.name());
  return names;
}

const MetricSpec kAccuracy{MetricSpec::Kind::kAccuracy, 1};
MetricSpec TopK(int64_t k) { return {MetricSpec::Kind::kTopK, k}; }

TEST(InferMetricsTest, AccuracyIsTheDefaultOfCrossEntropies) {
  EXPECT_THAT(Names(*Infer("", ModelWith(LossKind::kSoftmaxCrossEntropy, 10))),
              ElementsAre("accuracy"));
  EXPECT_THAT(Names(*Infer("", ModelWith(LossKind::kSigmoidCrossEntropy, 1))),
              ElementsAre("accuracy"));
  EXPECT_THAT(Names(*Infer("", ModelWith(LossKind::kMeanSquaredError, 1))), ElementsAre());
}

TEST(InferMetricsTest, KeepsTheOrder) {
  const auto metrics =
      Infer("metrics { top_k { k: 5 } } metrics { accuracy {} } metrics { top_k { k: 3 } }",
            ModelWith(LossKind::kSoftmaxCrossEntropy, 10));
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_THAT(Names(*metrics), ElementsAre("top_5", "accuracy", "top_3"));
}

TEST(InferMetricsTest, EachByItsName) {
  EXPECT_THAT(Names(*Infer("metrics { auc {} } metrics { auc { curve: PRECISION_RECALL } }"
                           "metrics { precision {} } metrics { recall {} }"
                           "metrics { mean_squared_error {} } metrics { mean_absolute_error {} }",
                           ModelWith(LossKind::kSigmoidCrossEntropy, 1))),
              ElementsAre("auc", "auc_pr", "precision", "recall", "mean_squared_error",
                          "mean_absolute_error"));
  EXPECT_THAT(Names(*Infer("metrics { precision {} } metrics { recall {} }",
                           ModelWith(LossKind::kSoftmaxCrossEntropy, 10))),
              ElementsAre("precision", "recall"));
  EXPECT_THAT(Names(*Infer("metrics { mean_absolute_error {} }",
                           ModelWith(LossKind::kMeanSquaredError, 1))),
              ElementsAre("mean_absolute_error"));
}

// Clicks on items, with a feature of each kind.
ModelSpec ClickModel() {
  ModelSpec model = ModelWith(LossKind::kSigmoidCrossEntropy, 1);
  model.records.features = {{.name = "seen", .kind = FeatureKind::kBag},
                            {.name = "item", .kind = FeatureKind::kId},
                            {.name = "price", .shape = Shape({1})},
                            {.name = "user", .kind = FeatureKind::kId}};
  return model;
}

TEST(InferMetricsTest, OfClicks) {
  const auto metrics = Infer(
      "metrics { normalized_entropy {} } metrics { calibration {} }"
      "metrics { group_auc { feature: \"user\" } }"
      "metrics { group_auc { feature: \"user\" weighting: GROUPS } }"
      "metrics { group_auc { feature: \"item\" weighting: EXAMPLES } }",
      ClickModel());
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_THAT(Names(*metrics), ElementsAre("normalized_entropy", "calibration", "group_auc/user",
                                           "group_auc_mean/user", "group_auc/item"));
  EXPECT_EQ((*metrics)[3].group_feature, 3u);
  EXPECT_EQ((*metrics)[4].group_feature, 1u);
}

TEST(InferMetricsTest, OfPairsKnowsAccuracyAndTopK) {
  const ModelSpec pairs = ModelWith(LossKind::kInBatchSoftmax, 1);
  EXPECT_THAT(Names(*Infer("", pairs)), ElementsAre("accuracy"));
  EXPECT_THAT(Names(*Infer("metrics { top_k { k: 20 } }", pairs)), ElementsAre("top_20"));
}

TEST(CountCorrectPairsTest, AQueryIsRightWhoseOwnItemIsAmongTheHighest) {
  const std::vector<float> scores = {3, 1, 2,   // first
                                     5, 4, 4,   // second
                                     7, 7, 7};  // last
  EXPECT_EQ(CountCorrectPairs({MetricSpec::Kind::kAccuracy}, 3, scores), 1);
  EXPECT_EQ(CountCorrectPairs({MetricSpec::Kind::kTopK, 2}, 3, scores), 2);
  EXPECT_EQ(CountCorrectPairs({MetricSpec::Kind::kTopK, 3}, 3, scores), 3);
  EXPECT_EQ(CountCorrectPairs({MetricSpec::Kind::kTopK, 9}, 3, scores), 3);
  EXPECT_EQ(CountCorrectPairs({MetricSpec::Kind::kAccuracy}, 1, {-2}), 1);
}

TEST(InferMetricsTest, Refuses) {
  const ModelSpec softmax = ModelWith(LossKind::kSoftmaxCrossEntropy, 10);
  const ModelSpec sigmoid = ModelWith(LossKind::kSigmoidCrossEntropy, 1);
  const ModelSpec squared = ModelWith(LossKind::kMeanSquaredError, 1);
  const ModelSpec pairs = ModelWith(LossKind::kInBatchSoftmax, 1);
  const ModelSpec clicks = ClickModel();
  struct Case {
    const char* config;
    const ModelSpec& model;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {"metrics {}", softmax,
            "evaluation.metrics[0]: expected accuracy, top_k, auc, precision, recall, "
            "mean_squared_error, mean_absolute_error, normalized_entropy, calibration, "
            "group_auc or retrieval, found none"},
           {"metrics { top_k {} }", softmax,
            "evaluation.metrics[0].top_k.k: expected 1..10 (the classes), found 0"},
           {"metrics { accuracy {} } metrics { top_k { k: 11 } }", softmax,
            "evaluation.metrics[1].top_k.k: expected 1..10 (the classes), found 11"},
           {"metrics { accuracy {} } metrics { accuracy {} }", softmax,
            "evaluation.metrics[1]: expected each metric once, found accuracy again"},
           {"metrics { auc {} } metrics { auc { curve: ROC } }", sigmoid,
            "evaluation.metrics[1]: expected each metric once, found auc again"},
           {"metrics { auc {} }", softmax,
            "evaluation.metrics[0].auc: expected a model with the loss SIGMOID_CROSS_ENTROPY, "
            "found SOFTMAX_CROSS_ENTROPY"},
           {"metrics { mean_squared_error {} }", softmax,
            "evaluation.metrics[0].mean_squared_error: expected a model with the loss "
            "MEAN_SQUARED_ERROR or HUBER or SIGMOID_CROSS_ENTROPY, found SOFTMAX_CROSS_ENTROPY"},
           {"metrics { recall {} }", squared,
            "evaluation.metrics[0].recall: expected a model with the loss SOFTMAX_CROSS_ENTROPY "
            "or SIGMOID_CROSS_ENTROPY, found MEAN_SQUARED_ERROR"},
           {"metrics { top_k { k: 1 } }", sigmoid,
            "evaluation.metrics[0].top_k: expected a model with the loss SOFTMAX_CROSS_ENTROPY or "
            "IN_BATCH_SOFTMAX, found SIGMOID_CROSS_ENTROPY"},
           {"metrics { accuracy {} }", squared,
            "evaluation.metrics[0].accuracy: expected a model with the loss "
            "SOFTMAX_CROSS_ENTROPY or SIGMOID_CROSS_ENTROPY or IN_BATCH_SOFTMAX, found "
            "MEAN_SQUARED_ERROR"},
           {"metrics { normalized_entropy {} }", squared,
            "evaluation.metrics[0].normalized_entropy: expected a model with the loss "
            "SIGMOID_CROSS_ENTROPY, found MEAN_SQUARED_ERROR"},
           {"metrics { calibration {} }", softmax,
            "evaluation.metrics[0].calibration: expected a model with the loss "
            "SIGMOID_CROSS_ENTROPY, found SOFTMAX_CROSS_ENTROPY"},
           {"metrics { group_auc { feature: \"user\" } }", pairs,
            "evaluation.metrics[0].group_auc: expected a model with the loss "
            "SIGMOID_CROSS_ENTROPY, found IN_BATCH_SOFTMAX"},
           {"metrics { group_auc { feature: \"seen\" } }", clicks,
            "evaluation.metrics[0].group_auc.feature: expected a feature of the kind id (item, "
            "user), found \"seen\""},
           {"metrics { group_auc {} }", sigmoid,
            "evaluation.metrics[0].group_auc.feature: expected a feature of the kind id (the "
            "model has none), found \"\""},
           {"metrics { group_auc { feature: \"user\" } }"
            "metrics { group_auc { feature: \"user\" weighting: EXAMPLES } }",
            clicks, "evaluation.metrics[1]: expected each metric once, found group_auc/user again"},
           {"metrics { top_k { k: 0 } }", pairs,
            "evaluation.metrics[0].top_k.k: expected 1 or more, found 0"},
           {"metrics { precision {} }", pairs,
            "evaluation.metrics[0].precision: expected a model with the loss "
            "SOFTMAX_CROSS_ENTROPY or SIGMOID_CROSS_ENTROPY, found IN_BATCH_SOFTMAX"}}) {
    const auto metrics = Infer(c.config, c.model);
    EXPECT_EQ(metrics.status(), absl::InvalidArgumentError(c.message)) << c.config;
  }
}

TEST(InferMetricsTest, ACurveThatIsNone) {
  v1::EvaluationConfig config;
  config.add_metrics()->mutable_auc()->set_curve(static_cast<v1::EvaluationConfig::Auc::Curve>(7));
  EXPECT_EQ(InferMetrics(config, ModelWith(LossKind::kSigmoidCrossEntropy, 1)).status(),
            absl::InvalidArgumentError(
                "evaluation.metrics[0].auc.curve: expected ROC or PRECISION_RECALL, found 7"));
}

TEST(InferMetricsTest, AWeightingThatIsNone) {
  v1::EvaluationConfig config;
  auto* const group_auc = config.add_metrics()->mutable_group_auc();
  group_auc->set_feature("user");
  group_auc->set_weighting(static_cast<v1::EvaluationConfig::GroupAuc::Weighting>(7));
  EXPECT_EQ(InferMetrics(config, ClickModel()).status(),
            absl::InvalidArgumentError(
                "evaluation.metrics[0].group_auc.weighting: expected EXAMPLES or GROUPS, found 7"));
}

// Two towers, whose items have a price too.
ModelSpec TowersModel() {
  const auto model = InferModelSpec(ParseModel(R"(
    features { name: "price" dense { shape: 1 } }
    features { name: "user" id {} }
    features { name: "item" id {} }
    features { name: "seen" bag {} }
    tables { name: "users" dim: 4 } tables { name: "items" dim: 3 }
    layers { name: "of_user" inputs: "user" embedding { table: "users" } }
    layers { name: "of_seen" inputs: "seen" embedding_bag { table: "users" } }
    layers { name: "query" add {} inputs: "of_user" inputs: "of_seen" }
    layers { name: "of_item" inputs: "item" embedding { table: "items" } }
    layers { name: "found" concat {} inputs: "of_item" inputs: "price" }
    loss { kind: IN_BATCH_SOFTMAX queries: "query" items: "found" })"));
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

TEST(InferRetrievalTest, EachByItsName) {
  const ModelSpec model = TowersModel();
  const auto metrics = Infer(R"(
    metrics { retrieval { measure: RECALL k: 10 item_feature: "item" } }
    metrics { retrieval { measure: HIT_RATE k: 5 item_feature: "item" query_feature: "user" } }
    metrics { retrieval { measure: NDCG k: 20 item_feature: "item" exclude_features: "seen"
                          exclude_features: "user" } })",
                             model);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_THAT(Names(*metrics), ElementsAre("recall@10", "hit_rate@5", "ndcg@20"));
  EXPECT_EQ((*metrics)[0].retrieval, (RetrievalSpec{.item_feature = 2}));
  EXPECT_EQ((*metrics)[1].retrieval, (RetrievalSpec{.item_feature = 2, .query_feature = 1}));
  EXPECT_EQ((*metrics)[2].retrieval,
            (RetrievalSpec{.item_feature = 2, .exclude_features = {3, 1}}));
}

TEST(InferRetrievalTest, Refuses) {
  const ModelSpec model = TowersModel();
  const auto expect_error = [&](const std::string& retrieval, const std::string& message) {
    EXPECT_EQ(Infer(absl::StrCat("metrics { retrieval { ", retrieval, " } }"), model).status(),
              absl::InvalidArgumentError(absl::StrCat("evaluation.metrics[0].retrieval.", message)))
        << retrieval;
  };
  expect_error("item_feature: \"item\"", "k: expected 1 or more, found 0");
  expect_error("k: -1 item_feature: \"item\"", "k: expected 1 or more, found -1");
  expect_error("k: 1", "item_feature: expected a feature of the kind id (user, item), found \"\"");
  expect_error("k: 1 item_feature: \"seen\"",
               "item_feature: expected a feature of the kind id (user, item), found \"seen\"");
  expect_error(
      "k: 1 item_feature: \"user\"",
      "item_feature: expected a feature that the layer \"found\" depends on (price, item), "
      "found \"user\"");
  expect_error("k: 1 item_feature: \"item\" query_feature: \"price\"",
               "query_feature: expected a feature of the kind id (user, item), found \"price\"");
  expect_error("k: 1 item_feature: \"item\" exclude_features: [\"seen\", \"price\"]",
               "exclude_features[1]: expected a feature of the kind id or bag (user, item, seen), "
               "found \"price\"");
  expect_error("k: 1 item_feature: \"item\" exclude_features: \"item\"",
               "exclude_features[0]: expected another feature than the items', found \"item\"");
  v1::EvaluationConfig config;
  auto* const retrieval = config.add_metrics()->mutable_retrieval();
  retrieval->set_measure(static_cast<v1::EvaluationConfig::Retrieval::Measure>(7));
  EXPECT_EQ(InferMetrics(config, model).status(),
            absl::InvalidArgumentError("evaluation.metrics[0].retrieval.measure: expected RECALL, "
                                       "HIT_RATE or NDCG, found 7"));
  EXPECT_EQ(
      Infer("metrics { retrieval { k: 1 item_feature: \"user\" } }", ClickModel()).status(),
      absl::InvalidArgumentError("evaluation.metrics[0].retrieval: expected a model with the loss "
                                 "IN_BATCH_SOFTMAX, found SIGMOID_CROSS_ENTROPY"));
  EXPECT_EQ(Infer("metrics { retrieval { k: 1 item_feature: \"item\" } }"
                  "metrics { retrieval { k: 1 item_feature: \"item\" query_feature: \"user\" } }",
                  model)
                .status(),
            absl::InvalidArgumentError(
                "evaluation.metrics[1]: expected each metric once, found recall@1 again"));
}

TEST(CountCorrectTest, Accuracy) {
  const std::vector<float> scores = {1, 3, 2, /**/ 5, 4, 3, /**/ 0, 1, 2};
  EXPECT_EQ(CountCorrect(kAccuracy, 3, scores, std::vector<float>{1, 0, 2}), 3);
  EXPECT_EQ(CountCorrect(kAccuracy, 3, scores, std::vector<float>{1, 1, 0}), 1);
}

TEST(CountCorrectTest, TopK) {
  const std::vector<float> scores = {1, 3, 2, 0};
  const auto in_top = [&](int64_t k, float label) {
    return CountCorrect(TopK(k), 4, scores, std::vector<float>{label});
  };
  EXPECT_EQ(in_top(1, 1), 1);
  EXPECT_EQ(in_top(1, 2), 0);
  EXPECT_EQ(in_top(2, 2), 1);
  EXPECT_EQ(in_top(2, 0), 0);
  EXPECT_EQ(in_top(3, 0), 1);
  EXPECT_EQ(in_top(4, 3), 1);
}

TEST(CountCorrectTest, OfEqualScoresTheFirstIsTheHighest) {
  const std::vector<float> scores = {0, 0, 0};
  EXPECT_EQ(CountCorrect(kAccuracy, 3, scores, std::vector<float>{0}), 1);
  EXPECT_EQ(CountCorrect(kAccuracy, 3, scores, std::vector<float>{1}), 0);
  EXPECT_EQ(CountCorrect(TopK(2), 3, scores, std::vector<float>{1}), 1);
  EXPECT_EQ(CountCorrect(TopK(2), 3, scores, std::vector<float>{2}), 0);
}

TEST(CountCorrectTest, NotANumberIsNeverRight) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(CountCorrect(kAccuracy, 2, std::vector<float>{nan, nan}, std::vector<float>{0}), 0);
  EXPECT_EQ(CountCorrect(kAccuracy, 2, std::vector<float>{1, nan}, std::vector<float>{0}), 0);
  EXPECT_EQ(CountCorrect(kAccuracy, 2, std::vector<float>{nan, 1}, std::vector<float>{0}), 0);
}

TEST(CountCorrectTest, OneScoreIsComparedWithZero) {
  const std::vector<float> scores = {-1, 0, 0.1f, 3};
  EXPECT_EQ(CountCorrect(kAccuracy, 1, scores, std::vector<float>{0, 0, 1, 1}), 4);
  EXPECT_EQ(CountCorrect(kAccuracy, 1, scores, std::vector<float>{1, 1, 0, 1}), 1);
}

TEST(EvaluationSumsTest, AddsUpToMeans) {
  EvaluationSums total;
  total.Add({.loss = 3, .examples = 4, .correct = {2, 4}});
  total.Add({.loss = 1, .examples = 1, .correct = {1, 1}});
  EXPECT_EQ(total.examples, 5);
  const std::vector<MetricSpec> metrics = {kAccuracy, TopK(5)};
  EXPECT_THAT(MetricValues(ModelSpec(), total, metrics),
              ElementsAre(Pair("accuracy", 0.6), Pair("loss", 0.8), Pair("top_5", 1.0)));
}

TEST(EvaluationSumsTest, TellsOnlyOfMetricsThatCountExamples) {
  const std::vector<MetricSpec> metrics = {{MetricSpec::Kind::kAuc}, kAccuracy};
  EXPECT_THAT(MetricValues(ModelSpec(), {.loss = 2, .examples = 4, .correct = {0, 3}}, metrics),
              ElementsAre(Pair("accuracy", 0.75), Pair("loss", 0.5)));
}

TEST(EvaluationSumsTest, TellsOfEachOfSeveralLosses) {
  ModelSpec model;
  model.losses = {{.label_name = "click"}, {.label_name = "price"}};
  EvaluationSums total;
  total.Add({.loss = 3, .examples = 4, .losses = {1, 2}});
  total.Add({.loss = 2, .examples = 1, .losses = {1.5, 0.5}});
  EXPECT_THAT(MetricValues(model, total, {}),
              ElementsAre(Pair("loss", 1), Pair("loss/click", 0.5), Pair("loss/price", 0.5)));
}

TEST(EvaluationSumsTest, WithoutExamplesThereIsNoMean) {
  EXPECT_TRUE(std::isnan(MetricValues(ModelSpec(), EvaluationSums(), {}).at("loss")));
}

}  // namespace
}  // namespace keelson
