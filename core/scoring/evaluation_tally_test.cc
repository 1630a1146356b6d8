#include "core/scoring/evaluation_tally.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

using Json = nlohmann::json;
using Kind = MetricSpec::Kind;
using testing::SizeIs;

ModelSpec SpecOf(LossKind loss, int64_t outputs) {
  ModelSpec spec;
  spec.records.features = {{"features", Shape({2, 1})}};
  spec.losses.push_back({.kind = loss, .outputs = outputs, .label = 0});
  return spec;
}

// Random labels, and scores that know something of them; the features tell the record.
struct Examples {
  std::vector<float> labels;
  std::vector<float> scores;
};

Examples RandomExamples(const ModelSpec& spec, size_t n) {
  Examples examples;
  const int64_t classes = spec.main_loss().num_classes();
  for (size_t i = 0; i < n; ++i) {
    const float draw = UniformFloat(Philox(1, 0, i)[0]);
    const float label = classes == 0 ? draw : std::floor(draw * static_cast<float>(classes));
    examples.labels.push_back(label);
    for (int64_t c = 0; c < spec.main_loss().outputs; ++c) {
      const float noise = 4 * UniformFloat(Philox(2, static_cast<uint64_t>(c), i)[0]) - 2;
      const bool of_label =
          spec.main_loss().outputs == 1 ? label > 0.5f : label == static_cast<float>(c);
      examples.scores.push_back(noise + (of_label ? 1.0f : 0.0f));
    }
  }
  return examples;
}

EvaluationOutcome Tally(const ModelSpec& spec, const std::vector<MetricSpec>& metrics,
                        const Examples& examples, size_t batch_size,
                        std::vector<std::string> class_names = {}) {
  EvaluationTally tally(&spec, &metrics, std::move(class_names));
  const size_t outputs = spec.main_loss().outputs;
  for (size_t begin = 0; begin < examples.labels.size(); begin += batch_size) {
    const size_t n = std::min(batch_size, examples.labels.size() - begin);
    const auto rows = static_cast<int64_t>(n);
    Batch batch = MakeBatch(Tensor(Shape({rows, 2, 1})), Tensor(Shape({rows})));
    for (size_t i = 0; i < n; ++i) {
      batch.labels[0].span()[i] = examples.labels[begin + i];
      batch.features[0].numbers.span()[2 * i] = static_cast<float>(begin + i) / 255;
    }
    std::vector<float> scores(
        examples.scores.begin() + static_cast<int64_t>(begin * outputs),
        examples.scores.begin() + static_cast<int64_t>((begin + n) * outputs));
    EvaluationSums sums;
    sums.loss = static_cast<double>(n) * 2;
    sums.examples = rows;
    for (const MetricSpec& metric : metrics) {
      sums.correct.push_back(
          metric.counts_examples()
              ? CountCorrect(metric, spec.main_loss().outputs, scores, batch.labels[0].span())
              : 0);
    }
    tally.Add(static_cast<int64_t>(begin), batch, sums, absl::MakeSpan(scores));
  }
  return tally.Finish();
}

Json Parsed(const EvaluationReport& report) {
  const std::string text = FormatReport(report);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

TEST(EvaluationTallyTest, ClassesAgreeWithTheDefinitions) {
  constexpr int64_t kClasses = 5;
  const ModelSpec spec = SpecOf(LossKind::kSoftmaxCrossEntropy, kClasses);
  const Examples examples = RandomExamples(spec, 203);
  const std::vector<MetricSpec> metrics = {
      {Kind::kAccuracy}, {Kind::kTopK, 2}, {Kind::kPrecision}, {Kind::kRecall}};
  const EvaluationOutcome outcome = Tally(spec, metrics, examples, 50);
  std::vector<int> predicted;
  double right = 0;
  double confidence = 0;
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    const auto row = examples.scores.begin() + static_cast<int64_t>(i) * kClasses;
    const auto highest = std::max_element(row, row + kClasses);
    double sum = 0;
    for (auto score = row; score != row + kClasses; ++score) sum += std::exp(*score);
    confidence += std::exp(*highest) / sum;
    predicted.push_back(static_cast<int>(highest - row));
    right += static_cast<float>(predicted.back()) == examples.labels[i] ? 1 : 0;
  }
  double precision = 0;
  double recall = 0;
  for (int c = 0; c < kClasses; ++c) {
    double hits = 0;
    double of_class = 0;
    double as_class = 0;
    for (size_t i = 0; i < examples.labels.size(); ++i) {
      const bool is = examples.labels[i] == static_cast<float>(c);
      hits += is && predicted[i] == c ? 1 : 0;
      of_class += is ? 1 : 0;
      as_class += predicted[i] == c ? 1 : 0;
    }
    precision += hits / as_class / kClasses;
    recall += hits / of_class / kClasses;
  }
  EXPECT_THAT(outcome.metrics, SizeIs(5));
  EXPECT_DOUBLE_EQ(outcome.metrics.at("loss"), 2);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("accuracy"), right / 203);
  EXPECT_NEAR(outcome.metrics.at("precision"), precision, 1e-12);
  EXPECT_NEAR(outcome.metrics.at("recall"), recall, 1e-12);
  EXPECT_GT(outcome.metrics.at("top_2"), right / 203);
  EXPECT_DOUBLE_EQ(outcome.report.accuracy, right / 203);
  double binned = 0;
  double count = 0;
  for (const CalibrationBin& bin : outcome.report.calibration) {
    binned += bin.confidence * static_cast<double>(bin.count);
    count += static_cast<double>(bin.count);
    EXPECT_LE(bin.from, bin.confidence);
    EXPECT_LE(bin.confidence, bin.to);
  }
  EXPECT_EQ(count, 203);
  EXPECT_NEAR(binned, confidence, 1e-3);
}

TEST(EvaluationTallyTest, BatchesMakeNoDifference) {
  for (const ModelSpec& spec :
       {SpecOf(LossKind::kSoftmaxCrossEntropy, 3), SpecOf(LossKind::kSigmoidCrossEntropy, 1),
        SpecOf(LossKind::kMeanSquaredError, 1)}) {
    const Examples examples = RandomExamples(spec, 61);
    const EvaluationOutcome whole = Tally(spec, {}, examples, 61);
    const EvaluationOutcome parts = Tally(spec, {}, examples, 7);
    EXPECT_EQ(FormatReport(whole.report), FormatReport(parts.report));
  }
}

TEST(EvaluationTallyTest, TheWorstExamplesOfClasses) {
  const ModelSpec spec = SpecOf(LossKind::kSoftmaxCrossEntropy, 3);
  const Examples examples = {{0, 1, 2, 1}, {5, 0, 0, /**/ 9, 0, 0, /**/ 1, 0, 0, /**/ 0, 0, NAN}};
  const EvaluationOutcome outcome = Tally(spec, {}, examples, 2, {"a", "b", "c"});
  EXPECT_DOUBLE_EQ(outcome.report.accuracy, 0.25);
  const Json json = Parsed(outcome.report);
  EXPECT_EQ(json["kind"], "classification");
  EXPECT_EQ(json["classes"], Json::parse(R"(["a", "b", "c"])"));
  EXPECT_EQ(json["confusion"], Json::parse("[[1, 0, 0], [1, 0, 0], [1, 0, 0]]"));
  EXPECT_EQ(json["examples"], 4);
  const Json& wrong = json["wrong"];
  ASSERT_THAT(wrong, SizeIs(3)) << "record 0 is right";
  EXPECT_EQ(wrong[0]["record"], 3);
  EXPECT_EQ(wrong[0]["label"], 1);
  EXPECT_TRUE(wrong[0]["predicted"].is_null()) << wrong[0];
  EXPECT_TRUE(wrong[0]["confidence"].is_null());
  EXPECT_TRUE(wrong[0]["label_probability"].is_null());
  EXPECT_EQ(wrong[1]["record"], 1);
  EXPECT_EQ(wrong[1]["predicted"], 0);
  EXPECT_NEAR(wrong[1]["confidence"].get<double>(), 1 / (1 + 2 * std::exp(-9.0)), 1e-6);
  EXPECT_NEAR(wrong[1]["label_probability"].get<double>(), std::exp(-9.0), 1e-6);
  EXPECT_EQ(wrong[1]["input"], Json::parse(R"({"shape": [2, 1], "values": [1, 0]})"));
  EXPECT_EQ(wrong[2]["record"], 2);
  EXPECT_FALSE(json.contains("auc"));
  EXPECT_FALSE(json.contains("pairs"));
}

TEST(EvaluationTallyTest, BinaryLabelsByHand) {
  const ModelSpec spec = SpecOf(LossKind::kSigmoidCrossEntropy, 1);
  const std::vector<MetricSpec> metrics = {
      {Kind::kAccuracy},         {Kind::kAuc},    {Kind::kAucPrecisionRecall},
      {Kind::kPrecision},        {Kind::kRecall}, {Kind::kMeanSquaredError},
      {Kind::kMeanAbsoluteError}};
  // Probabilities 0.75, 0.9, 0.25, 0.25.
  const float s = std::log(3.0f);
  const Examples examples = {{1, 0, 1, 0}, {s, std::log(9.0f), -s, -s}};
  const EvaluationOutcome outcome = Tally(spec, metrics, examples, 3);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("precision"), 0.5) << "of two, one is";
  EXPECT_DOUBLE_EQ(outcome.metrics.at("recall"), 0.5);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("auc"), 1.5 / 4);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("auc_pr"), 0.5 * 0.5 + 0.5 * 0.5);
  EXPECT_NEAR(outcome.metrics.at("mean_squared_error"), (0.0625 + 0.81 + 0.5625 + 0.0625) / 4,
              1e-6);
  EXPECT_NEAR(outcome.metrics.at("mean_absolute_error"), (0.25 + 0.9 + 0.75 + 0.25) / 4, 1e-6);

  const Json json = Parsed(outcome.report);
  EXPECT_EQ(json["kind"], "binary");
  EXPECT_EQ(json["classes"], Json::parse(R"(["0", "1"])"));
  EXPECT_EQ(json["confusion"], Json::parse("[[1, 1], [1, 1]]"));
  EXPECT_EQ(json["auc"], 0.375);
  EXPECT_EQ(json["auc_pr"], 0.5);
  EXPECT_EQ(json["roc"], Json::parse("[[0.0, 0.0], [0.5, 0.0], [0.5, 0.5], [1.0, 1.0]]"));
  EXPECT_EQ(json["precision_recall"].front(), Json::parse("[0.0, 1.0]"));
  // The bins of the probability of label 1: 0.25, 0.25 | 0.75 | 0.9.
  ASSERT_THAT(json["calibration"], SizeIs(3));
  EXPECT_EQ(json["calibration"][0]["count"], 2);
  EXPECT_EQ(json["calibration"][0]["accuracy"], 0.5);
  EXPECT_EQ(json["calibration"][1]["accuracy"], 1);
  EXPECT_EQ(json["calibration"][2]["accuracy"], 0);
  ASSERT_THAT(json["wrong"], SizeIs(2));
  EXPECT_EQ(json["wrong"][0]["record"], 1);
  EXPECT_EQ(json["wrong"][0]["label"], 0);
  EXPECT_EQ(json["wrong"][0]["predicted"], 1);
  EXPECT_NEAR(json["wrong"][0]["confidence"].get<double>(), 0.9, 1e-6);
  EXPECT_NEAR(json["wrong"][0]["label_probability"].get<double>(), 0.1, 1e-6);
  EXPECT_EQ(json["wrong"][1]["record"], 2);
  EXPECT_NEAR(json["wrong"][1]["confidence"].get<double>(), 0.75, 1e-6);
}

// Clicks of the users 7 and 8 and, once, of 9, in two batches.
TEST(EvaluationTallyTest, ClicksByHand) {
  ModelSpec spec = SpecOf(LossKind::kSigmoidCrossEntropy, 1);
  spec.records.features = {{.name = "price", .shape = Shape({1})},
                           {.name = "user", .kind = FeatureKind::kId}};
  const std::vector<MetricSpec> metrics = {
      {.kind = Kind::kNormalizedEntropy},
      {.kind = Kind::kCalibration},
      {.kind = Kind::kGroupAuc, .group = "user", .group_feature = 1},
      {.kind = Kind::kGroupAucMean, .group = "user", .group_feature = 1}};
  const std::vector<uint64_t> users = {7, 8, 7, 8, 7, 9};
  const std::vector<float> labels = {1, 1, 0, 0, 1, 0};
  // Probabilities 0.75, 0.1, 0.75, 0.75, 0.9, 0.25: of 7 one pair is equal and one in order, of 8
  // the only one is not.
  const float s = std::log(3.0f);
  const float t = std::log(9.0f);
  std::vector<float> scores = {s, -t, s, s, t, -s};
  EvaluationTally tally(&spec, &metrics, {});
  for (const size_t begin : {0u, 3u}) {
    Batch batch = MakeBatch(Tensor(Shape({3, 1})), Tensor(Shape({3})));
    batch.features.emplace_back();
    for (size_t i = 0; i < 3; ++i) {
      batch.features[1].ids.push_back(users[begin + i]);
      batch.labels[0].span()[i] = labels[begin + i];
    }
    tally.Add(static_cast<int64_t>(begin), batch, {.loss = 1, .examples = 3},
              absl::MakeSpan(scores).subspan(begin, 3));
  }
  const EvaluationOutcome outcome = tally.Finish();
  const double cross_entropy =
      -2 * std::log(0.75) - std::log(0.1) - 2 * std::log(0.25) - std::log(0.9);
  EXPECT_NEAR(outcome.metrics.at("normalized_entropy"), cross_entropy / 6 / std::log(2.0), 1e-6);
  EXPECT_NEAR(outcome.metrics.at("calibration"), 3.5 / 3, 1e-6);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("group_auc/user"), (3 * 0.75 + 2 * 0) / 5);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("group_auc_mean/user"), 0.75 / 2);
  ASSERT_THAT(outcome.report.groups, SizeIs(1));
  EXPECT_EQ(outcome.report.groups[0].feature, "user");
  EXPECT_EQ(outcome.report.groups[0].figures.one_label_groups, 1);

  const Json json = Parsed(outcome.report);
  EXPECT_EQ(json["normalized_entropy"], outcome.metrics.at("normalized_entropy"));
  EXPECT_EQ(json["calibration_ratio"], outcome.metrics.at("calibration"));
  EXPECT_EQ(json["group_auc"],
            Json::parse(R"([{"feature": "user", "auc": 0.45, "mean_auc": 0.375, "groups": 2,
                             "examples": 5, "one_label_groups": 1, "sampled": 1.0}])"));
  ASSERT_THAT(json["slices"], SizeIs(1));
  const Json& slice = json["slices"][0];
  EXPECT_EQ(slice["feature"], "user");
  EXPECT_EQ(slice["ids"], 3);
  EXPECT_EQ(slice["values"][0]["id"], "7");
  EXPECT_EQ(slice["values"][0]["examples"], 3);
  EXPECT_NEAR(slice["values"][0]["share"].get<double>(), 2.0 / 3, 1e-12);
  EXPECT_NEAR(slice["values"][0]["probability"].get<double>(), 0.8, 1e-6);
  EXPECT_TRUE(slice["values"][2]["normalized_entropy"].is_null());
  ASSERT_THAT(slice["frequencies"], SizeIs(2));
  EXPECT_EQ(slice["frequencies"][1]["ids"], 2);
  EXPECT_FALSE(slice.contains("others"));
  // 0.1, 0.25, three of 0.75, and 0.9.
  ASSERT_THAT(json["calibration_deciles"], SizeIs(4));
  EXPECT_EQ(json["calibration_deciles"][2]["count"], 3);
  EXPECT_NEAR(json["calibration_deciles"][2]["confidence"].get<double>(), 0.75, 1e-6);
  EXPECT_NEAR(json["calibration_deciles"][2]["accuracy"].get<double>(), 1.0 / 3, 1e-12);
  ASSERT_THAT(json["scores"], SizeIs(kScoreBins));
  EXPECT_EQ(json["scores"][0]["from"], -t);
  EXPECT_EQ(json["scores"][0]["counts"], Json::parse("[0, 1]"));
  ASSERT_THAT(json["wrong"], SizeIs(3));
  EXPECT_EQ(json["wrong"][0]["features"],
            Json::parse(R"([{"name": "price", "count": 1, "numbers": [0.0]},
                            {"name": "user", "count": 1, "ids": ["8"]}])"));
  EXPECT_FALSE(json["wrong"][0].contains("input"));
}

TEST(EvaluationTallyTest, OneLabelHasNoRanking) {
  const ModelSpec spec = SpecOf(LossKind::kSigmoidCrossEntropy, 1);
  const EvaluationOutcome outcome = Tally(spec, {{Kind::kAuc}}, {{1, 1}, {1, 2}}, 2);
  EXPECT_TRUE(std::isnan(outcome.metrics.at("auc")));
  const Json json = Parsed(outcome.report);
  EXPECT_TRUE(json["auc"].is_null());
  EXPECT_EQ(json["roc"], Json::array());
  EXPECT_TRUE(json["normalized_entropy"].is_null());
  EXPECT_EQ(json["group_auc"], Json::array());
}

TEST(EvaluationTallyTest, BinaryScoresThatAreNoNumbers) {
  const ModelSpec spec = SpecOf(LossKind::kSigmoidCrossEntropy, 1);
  const std::vector<MetricSpec> metrics = {{Kind::kAccuracy}, {Kind::kMeanSquaredError}};
  const EvaluationOutcome outcome = Tally(spec, metrics, {{0, 1}, {NAN, 1}}, 2);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(outcome.report.accuracy, 0.5);
  EXPECT_TRUE(std::isnan(outcome.metrics.at("mean_squared_error")));
  EXPECT_TRUE(Parsed(outcome.report)["wrong"][0]["predicted"].is_null());
}

TEST(EvaluationTallyTest, OfPairsKnowsTheSumsAlone) {
  ModelSpec spec = SpecOf(LossKind::kInBatchSoftmax, 1);
  spec.losses.front().label.reset();
  const std::vector<MetricSpec> metrics = {{Kind::kAccuracy}, {Kind::kTopK, 3}};
  EvaluationTally tally(&spec, &metrics, {});
  for (const int64_t rows : {3, 1}) {
    Batch batch = MakeBatch(Tensor(Shape({rows, 2, 1})), Tensor());
    batch.labels.clear();
    std::vector<float> scores(rows, -1.0f);
    const double loss = static_cast<double>(rows) * 2;
    tally.Add(0, batch, {.loss = loss, .examples = rows, .correct = {1, rows}},
              absl::MakeSpan(scores));
  }
  const EvaluationOutcome outcome = tally.Finish();
  EXPECT_EQ(outcome.metrics,
            (std::map<std::string, double>{{"loss", 2}, {"accuracy", 0.5}, {"top_3", 1}}));
  Json report = Parsed(outcome.report);
  report.erase("time");
  EXPECT_EQ(report, Json({{"step", 0},
                          {"kind", "retrieval"},
                          {"examples", 4},
                          {"retrieval", Json::array()},
                          {"wrong", Json::array()}}));
}

TEST(EvaluationTallyTest, RegressionByHand) {
  for (const LossKind loss : {LossKind::kMeanSquaredError, LossKind::kHuber}) {
    const ModelSpec spec = SpecOf(loss, 1);
    const std::vector<MetricSpec> metrics = {{Kind::kMeanSquaredError}, {Kind::kMeanAbsoluteError}};
    const EvaluationOutcome outcome = Tally(spec, metrics, {{1, 2, 3}, {1, 1, 6}}, 2);
    EXPECT_DOUBLE_EQ(outcome.metrics.at("mean_squared_error"), 10.0 / 3);
    EXPECT_DOUBLE_EQ(outcome.metrics.at("mean_absolute_error"), 4.0 / 3);
    Json json = Parsed(outcome.report);
    EXPECT_EQ(json["kind"], "regression");
    EXPECT_EQ(json["mean_squared_error"], 10.0 / 3);
    EXPECT_EQ(json["pairs"], Json::parse("[[1.0, 1.0], [2.0, 1.0], [3.0, 6.0]]"));
    ASSERT_THAT(json["wrong"], SizeIs(2));
    json["wrong"][0].erase("input");
    EXPECT_EQ(json["wrong"][0], Json::parse(R"({"record": 2, "target": 3.0, "prediction": 6.0})"));
    EXPECT_FALSE(json.contains("confusion"));
    EXPECT_FALSE(json.contains("classes"));
  }
}

}  // namespace
}  // namespace keelson
