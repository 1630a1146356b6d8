#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/random.h"
#include "core/scoring/direction.h"
#include "core/scoring/evaluation_tally.h"
#include "core/scoring/probabilities.h"

namespace keelson {
namespace {

using Json = nlohmann::json;
using Kind = MetricSpec::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(DirectionTest, LessIsBetterForTheLossAndErrors) {
  for (const char* name : {"loss", "mean_squared_error", "mean_absolute_error"}) {
    EXPECT_FALSE(HigherIsBetter(name)) << name;
  }
  for (const char* name : {"accuracy", "top_5", "auc", "auc_pr", "precision", "recall"}) {
    EXPECT_TRUE(HigherIsBetter(name)) << name;
  }
}

TEST(ProbabilitiesTest, Softmax) {
  std::vector<float> scores = {0, std::log(3.0f), /**/ 1000, -1000};
  ScoresToProbabilities(LossKind::kSoftmaxCrossEntropy, 2, absl::MakeSpan(scores));
  EXPECT_THAT(scores, ElementsAre(testing::FloatEq(0.25f), testing::FloatEq(0.75f), 1, 0));
}

TEST(ProbabilitiesTest, Sigmoid) {
  std::vector<float> scores = {0, std::log(3.0f), 1000, -1000};
  ScoresToProbabilities(LossKind::kSigmoidCrossEntropy, 1, absl::MakeSpan(scores));
  EXPECT_THAT(scores, ElementsAre(0.5f, testing::FloatEq(0.75f), 1, 0));
}

TEST(ProbabilitiesTest, RegressionIsTheScore) {
  std::vector<float> scores = {-2, 7};
  ScoresToProbabilities(LossKind::kMeanSquaredError, 1, absl::MakeSpan(scores));
  EXPECT_THAT(scores, ElementsAre(-2, 7));
}

TEST(PredictedClassTest, OfEqualScoresTheFirstAndNoneForNotANumber) {
  EXPECT_EQ(PredictedClass(std::vector<float>{1, 3, 3}), 1);
  EXPECT_EQ(PredictedClass(std::vector<float>{-kInfinity, -kInfinity}), 0);
  EXPECT_EQ(PredictedClass(std::vector<float>{1, kNan, 3}), -1);
}

TEST(ClassCountsTest, ByHand) {
  ClassCounts counts(3);
  // Labels 0, 0, 0, 1, 1; class 2 has no example.
  counts.Add(0, 0);
  counts.Add(0, 0);
  counts.Add(0, 1);
  counts.Add(1, 1);
  counts.Add(1, 2);
  EXPECT_DOUBLE_EQ(counts.Accuracy(), 0.6);
  EXPECT_THAT(counts.Confusion(),
              ElementsAre(ElementsAre(2, 1, 0), ElementsAre(0, 1, 1), ElementsAre(0, 0, 0)));
  const std::vector<ClassQuality> qualities = counts.Qualities();
  EXPECT_DOUBLE_EQ(qualities[0].precision, 1);
  EXPECT_DOUBLE_EQ(qualities[0].recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(qualities[0].f1, 0.8);
  EXPECT_EQ(qualities[0].support, 3);
  EXPECT_DOUBLE_EQ(qualities[1].precision, 0.5);
  EXPECT_DOUBLE_EQ(qualities[1].recall, 0.5);
  EXPECT_EQ(qualities[2].precision, 0);
  EXPECT_EQ(qualities[2].recall, 0);
  EXPECT_EQ(qualities[2].f1, 0);
  EXPECT_EQ(qualities[2].support, 0);
  const ClassQuality mean = MeanOfClasses(qualities);
  EXPECT_DOUBLE_EQ(mean.precision, 0.75) << "of the two classes that have examples";
  EXPECT_DOUBLE_EQ(mean.recall, (2.0 / 3 + 0.5) / 2);
  EXPECT_EQ(mean.support, 5);
}

TEST(ClassCountsTest, NoPredictionIsRightForNoLabel) {
  ClassCounts counts(2);
  counts.Add(0, -1);
  counts.Add(0, 0);
  EXPECT_DOUBLE_EQ(counts.Accuracy(), 0.5);
  EXPECT_DOUBLE_EQ(counts.Qualities()[0].recall, 0.5);
  EXPECT_THAT(counts.Confusion(), ElementsAre(ElementsAre(1, 0), ElementsAre(0, 0)));
}

TEST(ClassCountsTest, ManyClassesHaveNoMatrix) {
  ClassCounts most(ClassCounts::kMaxConfusionClasses);
  ClassCounts more(ClassCounts::kMaxConfusionClasses + 1);
  EXPECT_THAT(most.Confusion(), SizeIs(200));
  more.Add(200, 200);
  EXPECT_THAT(more.Confusion(), IsEmpty());
  EXPECT_DOUBLE_EQ(more.Qualities()[200].recall, 1);
}

TEST(ClassCountsTest, Empty) {
  EXPECT_TRUE(std::isnan(ClassCounts(2).Accuracy()));
  EXPECT_EQ(MeanOfClasses(ClassCounts(2).Qualities()).precision, 0);
}

TEST(CalibrationTest, ByHand) {
  Calibration calibration;
  calibration.Add(0.05, false);
  calibration.Add(0.82, true);
  calibration.Add(0.86, false);
  calibration.Add(1, true);
  calibration.Add(kNan, true);
  const std::vector<CalibrationBin> bins = calibration.Bins();
  ASSERT_THAT(bins, SizeIs(3));
  EXPECT_DOUBLE_EQ(bins[1].from, 0.8);
  EXPECT_DOUBLE_EQ(bins[1].to, 0.9);
  EXPECT_EQ(bins[1].count, 2);
  EXPECT_DOUBLE_EQ(bins[1].confidence, 0.84);
  EXPECT_DOUBLE_EQ(bins[1].accuracy, 0.5);
  EXPECT_DOUBLE_EQ(bins[2].to, 1);
  EXPECT_DOUBLE_EQ(calibration.Error(), (0.05 + 2 * 0.34 + 0) / 4);
}

TEST(CalibrationTest, Empty) {
  EXPECT_TRUE(std::isnan(Calibration().Error()));
  EXPECT_THAT(Calibration().Bins(), IsEmpty());
}

TEST(PairSampleTest, IsTheSameInAnyOrder) {
  PairSample forwards;
  PairSample backwards;
  constexpr int64_t kRecords = 5000;
  for (int64_t i = 0; i < kRecords; ++i) {
    forwards.Add(i, static_cast<float>(i), 1);
    backwards.Add(kRecords - 1 - i, static_cast<float>(kRecords - 1 - i), 1);
  }
  const auto pairs = forwards.Pairs();
  ASSERT_THAT(pairs, SizeIs(PairSample::kPairs));
  EXPECT_EQ(pairs, backwards.Pairs());
  EXPECT_TRUE(std::is_sorted(pairs.begin(), pairs.end()));
  // The sample has pairs of all parts of the records.
  const auto late = std::count_if(pairs.begin(), pairs.end(),
                                  [](const auto& pair) { return pair.first >= kRecords / 2; });
  EXPECT_NEAR(static_cast<double>(late), 250, 50);
}

TEST(PairSampleTest, FewAreAllThere) {
  PairSample sample;
  sample.Add(2, 20, 21);
  sample.Add(1, 10, 11);
  EXPECT_THAT(sample.Pairs(), ElementsAre(Pair(10, 11), Pair(20, 21)));
}

WrongExample Bad(int64_t record, double badness) {
  WrongExample example;
  example.record = record;
  example.badness = badness;
  return example;
}

TEST(WorstExamplesTest, KeepsTheWorst) {
  WorstExamples worst;
  constexpr int64_t kRecords = 100;
  for (int64_t i = 0; i < kRecords; ++i) {
    const int64_t record = i * 37 % kRecords;
    worst.Add(Bad(record, static_cast<double>(record)), {});
  }
  worst.Add(Bad(kRecords, kNan), {});
  ASSERT_THAT(worst.worst(), SizeIs(WorstExamples::kExamples));
  EXPECT_EQ(worst.worst()[0].record, kRecords) << "not a number";
  for (size_t i = 1; i < WorstExamples::kExamples; ++i) {
    EXPECT_EQ(worst.worst()[i].record, kRecords - static_cast<int64_t>(i));
  }
}

TEST(WorstExamplesTest, OfEqualOnesTheFirstRecords) {
  WorstExamples worst;
  for (int64_t record = 49; record >= 0; --record) worst.Add(Bad(record, 1), {});
  ASSERT_THAT(worst.worst(), SizeIs(WorstExamples::kExamples));
  for (size_t i = 0; i < WorstExamples::kExamples; ++i) {
    EXPECT_EQ(worst.worst()[i].record, static_cast<int64_t>(i));
  }
}

TEST(WorstExamplesTest, InputsAreBytes) {
  WorstExamples worst;
  worst.Add(Bad(0, 1), {0, 1, 0.5f, -3, 7, kNan});
  EXPECT_THAT(worst.worst()[0].input, ElementsAre(0, 255, 128, 0, 255, 0));
  const std::vector<float> most(WorstExamples::kMaxInputBytes);
  worst.Add(Bad(1, 2), most);
  EXPECT_THAT(worst.worst()[0].input, SizeIs(WorstExamples::kMaxInputBytes));
  const std::vector<float> more(WorstExamples::kMaxInputBytes + 1);
  worst.Add(Bad(2, 3), more);
  EXPECT_THAT(worst.worst()[0].input, IsEmpty());
}

ModelSpec SpecOf(LossKind loss, int64_t outputs) {
  ModelSpec spec;
  spec.input = Shape({2, 1});
  spec.loss = loss;
  spec.output_size = outputs;
  return spec;
}

// Random labels, and scores that know something of them; the features tell the record.
struct Examples {
  std::vector<float> labels;
  std::vector<float> scores;
};

Examples RandomExamples(const ModelSpec& spec, size_t n) {
  Examples examples;
  const int64_t classes = spec.num_classes();
  for (size_t i = 0; i < n; ++i) {
    const float draw = UniformFloat(Philox(1, 0, i)[0]);
    const float label = classes == 0 ? draw : std::floor(draw * static_cast<float>(classes));
    examples.labels.push_back(label);
    for (int64_t c = 0; c < spec.output_size; ++c) {
      const float noise = 4 * UniformFloat(Philox(2, static_cast<uint64_t>(c), i)[0]) - 2;
      const bool of_label = spec.output_size == 1 ? label > 0.5f : label == static_cast<float>(c);
      examples.scores.push_back(noise + (of_label ? 1.0f : 0.0f));
    }
  }
  return examples;
}

EvaluationOutcome Tally(const ModelSpec& spec, const std::vector<MetricSpec>& metrics,
                        const Examples& examples, size_t batch_size,
                        std::vector<std::string> class_names = {}) {
  EvaluationTally tally(&spec, &metrics, std::move(class_names));
  const auto outputs = static_cast<size_t>(spec.output_size);
  for (size_t begin = 0; begin < examples.labels.size(); begin += batch_size) {
    const size_t n = std::min(batch_size, examples.labels.size() - begin);
    const auto rows = static_cast<int64_t>(n);
    Batch batch{Tensor(Shape({rows, 2, 1})), Tensor(Shape({rows}))};
    for (size_t i = 0; i < n; ++i) {
      batch.labels.span()[i] = examples.labels[begin + i];
      batch.features.span()[2 * i] = static_cast<float>(begin + i) / 255;
    }
    std::vector<float> scores(
        examples.scores.begin() + static_cast<int64_t>(begin * outputs),
        examples.scores.begin() + static_cast<int64_t>((begin + n) * outputs));
    EvaluationSums sums;
    sums.loss = static_cast<double>(n) * 2;
    sums.examples = rows;
    for (const MetricSpec& metric : metrics) {
      sums.correct.push_back(metric.counts_examples() ? CountCorrect(metric, spec.output_size,
                                                                     scores, batch.labels.span())
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
  const Examples examples = {{0, 1, 2, 1}, {5, 0, 0, /**/ 9, 0, 0, /**/ 1, 0, 0, /**/ 0, 0, kNan}};
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

TEST(EvaluationTallyTest, OneLabelHasNoRanking) {
  const ModelSpec spec = SpecOf(LossKind::kSigmoidCrossEntropy, 1);
  const EvaluationOutcome outcome = Tally(spec, {{Kind::kAuc}}, {{1, 1}, {1, 2}}, 2);
  EXPECT_TRUE(std::isnan(outcome.metrics.at("auc")));
  const Json json = Parsed(outcome.report);
  EXPECT_TRUE(json["auc"].is_null());
  EXPECT_EQ(json["roc"], Json::array());
}

TEST(EvaluationTallyTest, BinaryScoresThatAreNoNumbers) {
  const ModelSpec spec = SpecOf(LossKind::kSigmoidCrossEntropy, 1);
  const std::vector<MetricSpec> metrics = {{Kind::kAccuracy}, {Kind::kMeanSquaredError}};
  const EvaluationOutcome outcome = Tally(spec, metrics, {{0, 1}, {kNan, 1}}, 2);
  EXPECT_DOUBLE_EQ(outcome.metrics.at("accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(outcome.report.accuracy, 0.5);
  EXPECT_TRUE(std::isnan(outcome.metrics.at("mean_squared_error")));
  EXPECT_TRUE(Parsed(outcome.report)["wrong"][0]["predicted"].is_null());
}

TEST(EvaluationTallyTest, RegressionByHand) {
  const ModelSpec spec = SpecOf(LossKind::kMeanSquaredError, 1);
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

TEST(ReportTest, NamesThatAreNotUtf8AreReplaced) {
  EvaluationReport report;
  report.step = 7;
  report.time = absl::FromUnixMicros(1'500'000);
  report.classes = {"a\xff"};
  const Json json = Parsed(report);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["time"], 1.5);
  EXPECT_EQ(json["classes"][0], "a\xef\xbf\xbd");
}

std::optional<BestValue> BestOfValues(absl::string_view metric,
                                      const std::map<int64_t, double>& values) {
  std::optional<BestValue> best;
  for (const auto& [step, value] : values) TakeIfBest(metric, step, value, &best);
  return best;
}

TEST(BestValueTest, IsTheFirstOfTheBest) {
  const std::map<int64_t, double> values = {{1, 0.5}, {2, 0.9}, {3, 0.9}, {4, 0.5}};
  EXPECT_EQ(BestOfValues("accuracy", values)->step, 2);
  EXPECT_EQ(BestOfValues("accuracy", values)->value, 0.9);
  EXPECT_EQ(BestOfValues("loss", values)->step, 1);
}

TEST(BestValueTest, IsFinite) {
  EXPECT_EQ(BestOfValues("accuracy", {{1, kNan}, {2, kInfinity}, {3, -kInfinity}}), std::nullopt);
  for (const char* metric : {"accuracy", "loss"}) {
    EXPECT_EQ(BestOfValues(metric, {{1, kInfinity}, {2, -kInfinity}, {3, 1}, {4, kNan}})->step, 3);
    for (const float value : {kNan, kInfinity, -kInfinity}) {
      EXPECT_TRUE(IsBetter(metric, 1, value)) << metric << " " << value;
      EXPECT_FALSE(IsBetter(metric, value, 1)) << metric << " " << value;
      EXPECT_FALSE(IsBetter(metric, value, kInfinity)) << metric << " " << value;
    }
  }
}

}  // namespace
}  // namespace keelson
