// The report of an evaluation beyond its metrics: the model's errors, and its confidence in them.
#ifndef KEELSON_CORE_SCORING_REPORT_H_
#define KEELSON_CORE_SCORING_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/model/spec/loss_spec.h"
#include "core/model/spec/record_schema.h"
#include "core/scoring/binary_ranking.h"
#include "core/scoring/binary_totals.h"
#include "core/scoring/calibration.h"
#include "core/scoring/class_counts.h"
#include "core/scoring/group_ranking.h"
#include "core/scoring/score_histogram.h"
#include "core/scoring/value_slices.h"
#include "core/scoring/worst_examples.h"
#include "core/tensor/shape.h"

namespace keelson {

// How well scores rank within the groups of examples that have the same id.
struct GroupReport {
  std::string feature;
  GroupRankingFigures figures;
};

// What metrics of retrieval are of.
struct RetrievalReport {
  std::vector<std::string> metrics;  // that rank alike
  int64_t items = 0;                 // that were ranked
  int64_t queries = 0;
};

// How good the probabilities are by the ids of a feature.
struct SliceReport {
  std::string feature;
  size_t ids = 0;                  // that were kept
  std::vector<ValueSlice> values;  // the most frequent ones
  std::vector<FrequencySlice> frequencies;
  BinaryTotals others;  // of ids that were not kept
};

struct EvaluationReport {
  int64_t step = 0;
  absl::Time time;
  LossKind loss = LossKind::kSoftmaxCrossEntropy;
  int64_t examples = 0;
  // The worst examples first. With classes, only those whose label was not predicted, ordered by
  // the label's probability; otherwise ordered by the distance from the target.
  std::vector<WrongExample> wrong;
  Shape input_shape;
  std::vector<FeatureSpec> features;  // the model's, of which the examples have values

  // The names of the classes; with binary labels 0 and 1.
  std::vector<std::string> classes;
  double accuracy = 0;
  std::vector<std::vector<int64_t>> confusion;  // as ClassCounts::Confusion
  std::vector<ClassQuality> per_class;
  // Bins of the predicted class's probability; with binary labels, of that of label 1.
  std::vector<CalibrationBin> calibration;
  double calibration_error = 0;

  // For binary labels only.
  std::optional<RankingCurves> ranking;
  double normalized_entropy = 0;
  double calibration_ratio = 0;
  std::vector<CalibrationBin> calibration_deciles;
  std::vector<ScoreBin> scores;
  std::vector<GroupReport> groups;  // of each feature by which a metric has groups
  std::vector<SliceReport> slices;  // of each feature that is an id

  // For regression only.
  double mean_squared_error = 0;
  double mean_absolute_error = 0;
  std::vector<std::pair<float, float>> pairs;  // a sample of (target, prediction)

  // For IN_BATCH_SOFTMAX only.
  std::vector<RetrievalReport> retrieval;
};

// "classification", "binary", "regression" or "retrieval".
const char* ReportKind(LossKind loss);

// As JSON on one line, with a line break: the `report` of docs/dashboard-api.md without "run" and
// "steps". Numbers that are not finite, and a prediction that is none, are null.
std::string FormatReport(const EvaluationReport& report);

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_REPORT_H_
