// A forward pass of a batch without dropout, and what it yields: scores and losses.
#ifndef KEELSON_CORE_MODEL_EVALUATION_PASS_H_
#define KEELSON_CORE_MODEL_EVALUATION_PASS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/replica_group.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/metrics.h"
#include "core/model/spec/model_spec.h"
#include "core/model/wire_transfer.h"

namespace keelson {

// What a loss of the kind IN_BATCH_SOFTMAX has of each record, [rows, dim] row-major.
struct PairVectors {
  std::vector<float> queries;
  std::vector<float> items;
};

// Made for one pass, on the first replica. Not thread-safe. Errors: the device's;
// RESOURCE_EXHAUSTED when there is no memory for the batch.
class EvaluationPass {
 public:
  // All must outlive it.
  EvaluationPass(const ModelSpec* spec, ReplicaGroup* replicas, LossTransfer* loss)
      : spec_(*spec), replicas_(replicas), loss_(loss) {}

  // The scores of the features, [rows, outputs] row-major.
  absl::Status Predict(const Batch& batch, std::vector<float>* scores);
  // Likewise, and the sums of losses and metrics.
  absl::StatusOr<EvaluationSums> Evaluate(const Batch& batch, absl::Span<const MetricSpec> metrics,
                                          std::vector<float>* scores);
  // After either, where the main loss is of the kind IN_BATCH_SOFTMAX: its queries and items.
  absl::Status DownloadPairs(const Batch& batch, PairVectors* pairs);

 private:
  absl::Status Enqueue(const Batch& batch);
  // Waits for the scores.
  absl::Status DownloadScores(const Batch& batch, std::vector<float>* scores);
  // How many examples are right by each metric; 0 by those that do not count examples.
  absl::StatusOr<std::vector<int64_t>> CountRight(const Batch& batch,
                                                  absl::Span<const MetricSpec> metrics,
                                                  absl::Span<const float> scores);
  // Waits for the sums of each loss, where there are several.
  absl::StatusOr<std::vector<double>> DownloadLosses();
  Replica& replica() const { return replicas_->first(); }

  const ModelSpec& spec_;
  ReplicaGroup* const replicas_;
  LossTransfer* const loss_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_EVALUATION_PASS_H_
