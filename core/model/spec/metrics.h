// The metrics of an evaluation; those that count examples are sums that can be added over batches.
// core/scoring computes the others.
#ifndef KEELSON_CORE_MODEL_SPEC_METRICS_H_
#define KEELSON_CORE_MODEL_SPEC_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/spec/model_spec.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// What is found for whom. Positions in RecordSchema::features.
struct RetrievalSpec {
  size_t item_feature = 0;
  std::optional<size_t> query_feature = {};  // nothing: each record is a query
  std::vector<size_t> exclude_features = {};

  friend bool operator==(const RetrievalSpec&, const RetrievalSpec&) = default;
};

struct MetricSpec {
  enum class Kind {
    kAccuracy,
    kTopK,
    kAuc,
    kAucPrecisionRecall,
    kPrecision,
    kRecall,
    kMeanSquaredError,
    kMeanAbsoluteError,
    kNormalizedEntropy,
    kCalibration,
    kGroupAuc,
    kGroupAucMean,
    kRetrievalRecall,
    kRetrievalHitRate,
    kRetrievalNdcg,
  };
  Kind kind = Kind::kAccuracy;
  // kTopK: the label, or the own item of a pair, is among the k highest scores. Of retrieval: how
  // many items are found for a query.
  int64_t k = 1;
  // Of kGroupAuc and kGroupAucMean: the feature whose ids are the groups, and its position in
  // RecordSchema::features.
  std::string group = {};
  size_t group_feature = 0;
  RetrievalSpec retrieval = {};

  // "accuracy", "top_5", "auc", "auc_pr", "precision", "recall", "mean_squared_error",
  // "mean_absolute_error", "normalized_entropy", "calibration", "group_auc/<feature>",
  // "group_auc_mean/<feature>", "recall@10", "hit_rate@10", "ndcg@10"
  std::string name() const;
  // It is the share of the examples that are right (CountCorrect).
  bool counts_examples() const { return kind == Kind::kAccuracy || kind == Kind::kTopK; }
  bool has_groups() const { return kind == Kind::kGroupAuc || kind == Kind::kGroupAucMean; }
  // It needs all records twice (RetrievalTally).
  bool is_retrieval() const {
    return kind == Kind::kRetrievalRecall || kind == Kind::kRetrievalHitRate ||
           kind == Kind::kRetrievalNdcg;
  }
};

// The configured metrics, beside the loss; by default accuracy for the cross-entropies and
// IN_BATCH_SOFTMAX, none for the others. INVALID_ARGUMENT, beginning with the field's path: a
// metric without a kind, one that the loss does not have, the same one twice, a `k` outside [1,
// scores], a curve, weighting or measure that is none, groups, items or queries by what is no
// feature of the kind id, items by a feature that the loss's items do not depend on, or items left
// out by what are no ids.
absl::StatusOr<std::vector<MetricSpec>> InferMetrics(const v1::EvaluationConfig& config,
                                                     const ModelSpec& model);

// The name under which a loss is reported where a model has several: "loss/<label>".
std::string LossMetricName(const LossSpec& loss);

struct EvaluationSums {
  double loss = 0;
  int64_t examples = 0;
  // One per loss where the model has several; otherwise empty.
  std::vector<double> losses = {};
  // One per metric: how many examples were right; 0 for those that do not count examples.
  std::vector<int64_t> correct = {};

  // Sums of the same model and metrics; empty `losses` and `correct` are all zeros.
  void Add(const EvaluationSums& other);
};

// Counts the examples that are right by `metric`, which counts examples. `scores` is
// [labels.size(), output_size]. With one score, the label is right when the score is > 0 for the
// label 1 and <= 0 for the label 0. Otherwise of equal scores the first counts as the highest, and
// a score that is not a number counts as higher than the label's.
int64_t CountCorrect(const MetricSpec& metric, int64_t output_size, absl::Span<const float> scores,
                     absl::Span<const float> labels);

// The same of pairs of a query and its item: a query is right when its own item has the highest
// score, or one of the k highest, among all items. `scores` is [pairs, pairs], items side by side.
int64_t CountCorrectPairs(const MetricSpec& metric, int64_t pairs, absl::Span<const float> scores);

// "loss", each of several losses by its name, and each metric that counts examples: means over the
// examples. Not-a-number without examples.
std::map<std::string, double> MetricValues(const ModelSpec& model, const EvaluationSums& sums,
                                           absl::Span<const MetricSpec> metrics);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_METRICS_H_
