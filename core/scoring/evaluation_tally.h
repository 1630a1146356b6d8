// Accumulates an evaluation batch by batch: its metrics, and the report of its errors.
#ifndef KEELSON_CORE_SCORING_EVALUATION_TALLY_H_
#define KEELSON_CORE_SCORING_EVALUATION_TALLY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/metrics.h"
#include "core/model/spec/model_spec.h"
#include "core/scoring/binary_ranking.h"
#include "core/scoring/binary_totals.h"
#include "core/scoring/calibration.h"
#include "core/scoring/class_counts.h"
#include "core/scoring/group_ranking.h"
#include "core/scoring/prediction_errors.h"
#include "core/scoring/report.h"
#include "core/scoring/value_slices.h"
#include "core/scoring/worst_examples.h"

namespace keelson {

struct EvaluationOutcome {
  // "loss" and the other metrics by their names, but those of retrieval (RetrievalTally).
  std::map<std::string, double> metrics;
  // Without a step and a time.
  EvaluationReport report;
};

// Memory does not grow with the examples, beyond 4 MiB for the scores of binary labels and then
// 16 MiB (BinaryRanking), in Finish 28 MiB more, 5 MiB for each feature that is an id
// (ValueSlices), and 32 MiB for each by which a metric has groups (GroupRanking). Not thread-safe.
class EvaluationTally {
 public:
  // Both outlive the tally. `class_names` are empty or one for each class of the model.
  EvaluationTally(const ModelSpec* model, const std::vector<MetricSpec>* metrics,
                  std::vector<std::string> class_names);

  // `sums`, of the tally's metrics, and `scores` are Model::Evaluate's of the batch, whose records
  // are numbered on from `first_record`. `scores` become probabilities.
  void Add(int64_t first_record, const Batch& batch, const EvaluationSums& sums,
           absl::Span<float> scores);

  // The outcome of all batches that were added. Metrics without a value, such as auc where all
  // labels are the same, are not-a-number; precision and recall without predictions or examples are
  // 0.
  EvaluationOutcome Finish();

 private:
  // A row of the batch that Add is given.
  struct Row {
    const Batch& batch;
    int64_t row = 0;
    int64_t record = 0;
    float label = 0;
  };

  void AddClasses(const Row& row, absl::Span<float> scores);
  void AddBinary(const Row& row, float* score);
  // `scores` of the batch's records, one each.
  void AddSlices(const Batch& batch, absl::Span<const float> scores);
  void AddGroups(const Batch& batch, absl::Span<const float> scores);
  void AddRegression(const Row& row, float prediction);
  void AddWrong(const Row& row, int64_t predicted, float confidence, float label_probability);
  EvaluationReport Report();
  double Value(const MetricSpec& metric, const EvaluationReport& report) const;

  const ModelSpec& model_;
  const std::vector<MetricSpec>& metrics_;
  const std::vector<std::string> class_names_;
  EvaluationSums sums_;
  WorstExamples worst_;
  // For classes and binary labels.
  ClassCounts counts_;
  Calibration calibration_;
  BinaryRanking ranking_;
  BinaryTotals totals_;
  std::map<size_t, GroupRanking> groups_;  // by the position of the groups' feature
  std::map<size_t, ValueSlices> slices_;   // of binary labels, by the position of the feature
  // For regression, and for the probability of binary labels.
  PredictionErrors errors_;
  PairSample pairs_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_EVALUATION_TALLY_H_
