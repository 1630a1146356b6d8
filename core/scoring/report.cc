#include "core/scoring/report.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

using Json = nlohmann::ordered_json;

Json Points(const std::vector<CurvePoint>& points) {
  Json json = Json::array();
  for (const CurvePoint& point : points) json.push_back({point.x, point.y});
  return json;
}

Json PerClass(const std::vector<ClassQuality>& qualities) {
  Json json = Json::array();
  for (const ClassQuality& quality : qualities) {
    json.push_back({{"precision", quality.precision},
                    {"recall", quality.recall},
                    {"f1", quality.f1},
                    {"support", quality.support}});
  }
  return json;
}

Json Bins(const std::vector<CalibrationBin>& bins) {
  Json json = Json::array();
  for (const CalibrationBin& bin : bins) {
    json.push_back({{"from", bin.from},
                    {"to", bin.to},
                    {"count", bin.count},
                    {"confidence", bin.confidence},
                    {"accuracy", bin.accuracy}});
  }
  return json;
}

Json Scores(const std::vector<ScoreBin>& bins) {
  Json json = Json::array();
  for (const ScoreBin& bin : bins) {
    json.push_back(
        {{"from", bin.from}, {"to", bin.to}, {"counts", {bin.negatives, bin.positives}}});
  }
  return json;
}

Json Groups(const std::vector<GroupReport>& groups) {
  Json json = Json::array();
  for (const auto& [feature, figures] : groups) {
    json.push_back({{"feature", feature},
                    {"auc", figures.auc},
                    {"mean_auc", figures.mean_auc},
                    {"groups", figures.groups},
                    {"examples", figures.examples},
                    {"one_label_groups", figures.one_label_groups},
                    {"sampled", figures.sampled}});
  }
  return json;
}

// Adds what is said of the examples of a slice.
Json WithTotals(Json json, const BinaryTotals& totals) {
  json["examples"] = totals.examples();
  json["share"] = totals.PositiveShare();
  json["probability"] = totals.MeanProbability();
  json["loss"] = totals.CrossEntropy();
  json["normalized_entropy"] = totals.NormalizedEntropy();
  return json;
}

Json Slices(const std::vector<SliceReport>& slices) {
  Json json = Json::array();
  for (const SliceReport& slice : slices) {
    Json values = Json::array(), frequencies = Json::array();
    for (const auto& [id, totals] : slice.values) {
      values.push_back(WithTotals({{"id", absl::StrCat(id)}}, totals));
    }
    for (const FrequencySlice& each : slice.frequencies) {
      frequencies.push_back(
          WithTotals({{"from", each.from}, {"to", each.to}, {"ids", each.ids}}, each.totals));
    }
    json.push_back({{"feature", slice.feature},
                    {"ids", slice.ids},
                    {"values", std::move(values)},
                    {"frequencies", std::move(frequencies)}});
    if (slice.others.examples() > 0) json.back()["others"] = WithTotals({}, slice.others);
  }
  return json;
}

Json WrongClass(const WrongExample& example) {
  Json json = {{"record", example.record}, {"label", static_cast<int64_t>(example.label)}};
  json["predicted"] = nullptr;
  if (example.prediction >= 0) json["predicted"] = static_cast<int64_t>(example.prediction);
  json["confidence"] = example.confidence;
  json["label_probability"] = example.label_probability;
  return json;
}

Json WrongNumber(const WrongExample& example) {
  return {
      {"record", example.record}, {"target", example.label}, {"prediction", example.prediction}};
}

// An id is text: a number of JSON is exact up to 2^53 for many a reader.
Json Features(const std::vector<FeatureSpec>& features, const WrongExample& example) {
  Json json = Json::array();
  for (size_t i = 0; i < example.features.size(); ++i) {
    const ExampleValues& values = example.features[i];
    Json& each = json.emplace_back(Json{{"name", features[i].name}, {"count", values.count}});
    if (features[i].kind == FeatureKind::kNumbers) {
      each["numbers"] = values.numbers;
      continue;
    }
    each["ids"] = Json::array();
    for (const uint64_t id : values.ids) each["ids"].push_back(absl::StrCat(id));
    if (features[i].weighted) each["weights"] = values.weights;
  }
  return json;
}

// The first values of each column, and of each the first bytes.
Json Columns(const RecordColumns& columns) {
  constexpr size_t kMostBytes = 200;
  Json json = Json::array();
  for (const RecordColumn& column : columns) {
    Json& each = json.emplace_back(
        Json{{"name", column.name}, {"count", column.values.size()}, {"texts", Json::array()}});
    for (const std::string& value : column.values) {
      if (each["texts"].size() == WorstExamples::kValues) break;
      each["texts"].push_back(value.substr(0, kMostBytes));
    }
  }
  return json;
}

Json Wrong(const EvaluationReport& report) {
  Json json = Json::array();
  const bool classes = !IsRegression(report.loss);
  for (const WrongExample& example : report.wrong) {
    json.push_back(classes ? WrongClass(example) : WrongNumber(example));
    if (!example.features.empty()) json.back()["features"] = Features(report.features, example);
    if (!example.columns.empty()) json.back()["columns"] = Columns(example.columns);
    if (example.input.empty()) continue;
    json.back()["input"] = {{"shape", report.input_shape.dims()}, {"values", example.input}};
  }
  return json;
}

void AddClasses(const EvaluationReport& report, Json* json) {
  (*json)["classes"] = report.classes;
  (*json)["accuracy"] = report.accuracy;
  if (!report.confusion.empty()) (*json)["confusion"] = report.confusion;
  (*json)["per_class"] = PerClass(report.per_class);
  (*json)["calibration"] = Bins(report.calibration);
  (*json)["calibration_error"] = report.calibration_error;
}

void AddRanking(const RankingCurves& ranking, Json* json) {
  (*json)["roc"] = Points(ranking.roc);
  (*json)["auc"] = ranking.auc;
  (*json)["precision_recall"] = Points(ranking.precision_recall);
  (*json)["auc_pr"] = ranking.auc_pr;
}

void AddBinary(const EvaluationReport& report, Json* json) {
  (*json)["normalized_entropy"] = report.normalized_entropy;
  (*json)["calibration_ratio"] = report.calibration_ratio;
  (*json)["calibration_deciles"] = Bins(report.calibration_deciles);
  (*json)["scores"] = Scores(report.scores);
  (*json)["group_auc"] = Groups(report.groups);
  (*json)["slices"] = Slices(report.slices);
}

void AddRetrieval(const EvaluationReport& report, Json* json) {
  Json& rankings = (*json)["retrieval"] = Json::array();
  for (const RetrievalReport& ranking : report.retrieval) {
    rankings.push_back(
        {{"metrics", ranking.metrics}, {"items", ranking.items}, {"queries", ranking.queries}});
  }
}

void AddRegression(const EvaluationReport& report, Json* json) {
  (*json)["mean_squared_error"] = report.mean_squared_error;
  (*json)["mean_absolute_error"] = report.mean_absolute_error;
  (*json)["pairs"] = report.pairs;
}

}  // namespace

const char* ReportKind(LossKind loss) {
  switch (loss) {
    case LossKind::kSoftmaxCrossEntropy:
      return "classification";
    case LossKind::kSigmoidCrossEntropy:
      return "binary";
    case LossKind::kMeanSquaredError:
    case LossKind::kHuber:
      return "regression";
    case LossKind::kInBatchSoftmax:
      return "retrieval";
  }
  return "";
}

std::string FormatReport(const EvaluationReport& report) {
  Json json = {{"step", report.step},
               {"time", static_cast<double>(absl::ToUnixMicros(report.time)) / 1e6},
               {"kind", ReportKind(report.loss)},
               {"examples", report.examples}};
  if (IsRegression(report.loss)) {
    AddRegression(report, &json);
  } else if (report.loss == LossKind::kInBatchSoftmax) {
    AddRetrieval(report, &json);
  } else {
    AddClasses(report, &json);
  }
  if (report.ranking.has_value()) AddRanking(*report.ranking, &json);
  if (report.loss == LossKind::kSigmoidCrossEntropy) AddBinary(report, &json);
  json["wrong"] = Wrong(report);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace keelson
