#include "evaluator/retrieval_scorer.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace keelson {
namespace {

// The metrics of retrieval, those together that rank alike.
std::vector<std::vector<MetricSpec>> ByRanking(absl::Span<const MetricSpec> metrics) {
  std::vector<std::vector<MetricSpec>> groups;
  for (const MetricSpec& metric : metrics) {
    if (!metric.is_retrieval()) continue;
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const std::vector<MetricSpec>& other) {
          return other.front().retrieval == metric.retrieval;
        });
    if (group == groups.end()) {
      groups.push_back({metric});
    } else {
      group->push_back(metric);
    }
  }
  return groups;
}

}  // namespace

RetrievalScorer::RetrievalScorer(Model* model, Device* device, absl::Span<const MetricSpec> metrics)
    : model_(model), device_(device) {
  for (std::vector<MetricSpec>& group : ByRanking(metrics)) {
    tallies_.emplace_back(std::move(group));
  }
}

void RetrievalScorer::AddItems(const Batch& batch, const PairVectors& pairs) {
  for (RetrievalTally& tally : tallies_) tally.AddItems(batch, pairs.items);
}

absl::Status RetrievalScorer::AddQueries(const Batch& batch) {
  const int64_t dim = model_->spec().main_loss().dim;
  for (size_t i = item_scores_.size(); i < tallies_.size(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<ItemScores> scores,
                     ItemScores::Create(device_, dim, tallies_[i].item_vectors()));
    item_scores_.push_back(std::move(scores));
  }
  PairVectors pairs;
  RETURN_IF_ERROR(model_->PredictPairs(batch, &pairs));
  for (size_t i = 0; i < tallies_.size(); ++i) RETURN_IF_ERROR(Rank(batch, pairs, i));
  return absl::OkStatus();
}

absl::Status RetrievalScorer::Rank(const Batch& batch, const PairVectors& pairs, size_t tally) {
  const std::vector<RetrievalQuery> queries = tallies_[tally].TakeQueries(batch);
  const auto dim = static_cast<size_t>(model_->spec().main_loss().dim);
  std::vector<float> vectors;
  for (const RetrievalQuery& query : queries) {
    const auto first = pairs.queries.begin() + static_cast<int64_t>(query.row * dim);
    vectors.insert(vectors.end(), first, first + static_cast<int64_t>(dim));
  }
  return item_scores_[tally]->Score(vectors, [&](size_t query, absl::Span<const float> scores) {
    tallies_[tally].Add(queries[query], scores);
  });
}

void RetrievalScorer::AddTo(EvaluationOutcome* outcome) const {
  for (const RetrievalTally& tally : tallies_) {
    outcome->metrics.merge(tally.Values());
    outcome->report.retrieval.push_back(tally.Report());
  }
}

}  // namespace keelson
