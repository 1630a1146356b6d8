// Metrics of an evaluation, as sums that can be added over batches.
#ifndef KEELSON_CORE_MODEL_METRICS_H_
#define KEELSON_CORE_MODEL_METRICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/model_spec.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct MetricSpec {
  enum class Kind { kAccuracy, kTopK };
  Kind kind = Kind::kAccuracy;
  int64_t k = 1;  // kTopK: the label is among the k highest scores

  // "accuracy", "top_5"
  std::string name() const;
};

// The metrics that the configuration asks for, beside the loss; by default accuracy for the
// cross-entropies and none for the mean squared error.
// INVALID_ARGUMENT, beginning with the field's path: a metric without a kind, one that the loss
// does not have, the same one twice, or a `k` outside [1, scores].
absl::StatusOr<std::vector<MetricSpec>> InferMetrics(const v1::EvaluationConfig& config,
                                                     const ModelSpec& model);

struct EvaluationSums {
  double loss = 0;
  int64_t examples = 0;
  // One per metric: how many examples were right.
  std::vector<int64_t> correct;

  // Sums of the same metrics; an empty `correct` is all zeros.
  void Add(const EvaluationSums& other);
};

// Counts the examples that are right by `metric`. `scores` is [labels.size(), output_size]. With
// one score, the label is right when (score > 0) == (label > 0.5). Otherwise of equal scores the
// first counts as the highest, and a score that is not a number counts as higher than the label's.
int64_t CountCorrect(const MetricSpec& metric, int64_t output_size, absl::Span<const float> scores,
                     absl::Span<const float> labels);

// "loss", and each metric by its name: means over the examples. Not-a-number without examples.
std::map<std::string, double> MetricValues(const EvaluationSums& sums,
                                           absl::Span<const MetricSpec> metrics);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_METRICS_H_
