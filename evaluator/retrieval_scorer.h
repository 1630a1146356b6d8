// Computes an evaluation's metrics of retrieval, which rank all of its items for each query.
#ifndef KEELSON_EVALUATOR_RETRIEVAL_SCORER_H_
#define KEELSON_EVALUATOR_RETRIEVAL_SCORER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/model/evaluation_pass.h"
#include "core/model/item_scores.h"
#include "core/model/model.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/metrics.h"
#include "core/scoring/evaluation_tally.h"
#include "core/scoring/retrieval_tally.h"

namespace keelson {

// Of one evaluation: AddItems of each batch, then AddQueries of each batch again. Not thread-safe.
class RetrievalScorer {
 public:
  // The model and its device outlive the scorer.
  RetrievalScorer(Model* model, Device* device, absl::Span<const MetricSpec> metrics);

  // None of the metrics is of retrieval: there is nothing to do.
  bool empty() const { return tallies_.empty(); }

  void AddItems(const Batch& batch, const PairVectors& pairs);
  // The model has the batch's rows. Errors of Model::PredictPairs and ItemScores.
  absl::Status AddQueries(const Batch& batch);
  // Adds the metrics, and to the report what they are of.
  void AddTo(EvaluationOutcome* outcome) const;

 private:
  absl::Status Rank(const Batch& batch, const PairVectors& pairs, size_t tally);

  Model* const model_;
  Device* const device_;
  std::vector<RetrievalTally> tallies_;                   // of metrics that rank alike
  std::vector<std::unique_ptr<ItemScores>> item_scores_;  // by tally, since the first AddQueries
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_RETRIEVAL_SCORER_H_
