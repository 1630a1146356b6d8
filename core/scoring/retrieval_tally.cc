#include "core/scoring/retrieval_tally.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/table/row_id.h"

namespace keelson {
namespace {

void SortDistinct(std::vector<uint32_t>* positions) {
  std::sort(positions->begin(), positions->end());
  positions->erase(std::unique(positions->begin(), positions->end()), positions->end());
}

double GainAt(int64_t rank) { return 1 / std::log2(static_cast<double>(rank) + 2); }

// `ranks` of the query's items, from 0.
double ValueOf(const MetricSpec& metric, absl::Span<const int64_t> ranks) {
  int64_t found = 0;
  double gain = 0, greatest = 0;
  const auto items = static_cast<int64_t>(ranks.size());
  for (const int64_t rank : ranks) {
    if (rank >= metric.k) continue;
    ++found;
    gain += GainAt(rank);
  }
  switch (metric.kind) {
    case MetricSpec::Kind::kRetrievalRecall:
      return static_cast<double>(found) / static_cast<double>(items);
    case MetricSpec::Kind::kRetrievalHitRate:
      return found > 0 ? 1 : 0;
    default:
      for (int64_t rank = 0; rank < std::min(items, metric.k); ++rank) greatest += GainAt(rank);
      return gain / greatest;
  }
}

}  // namespace

RetrievalTally::RetrievalTally(std::vector<MetricSpec> metrics)
    : metrics_(std::move(metrics)), spec_(metrics_.front().retrieval), sums_(metrics_.size()) {}

void RetrievalTally::AddItems(const Batch& batch, absl::Span<const float> vectors) {
  const std::vector<uint64_t>& items = batch.features[spec_.item_feature].ids;
  const size_t dim = vectors.size() / items.size();
  for (size_t row = 0; row < items.size(); ++row) {
    const auto next = static_cast<uint32_t>(hashes_.size());
    const auto [found, is_new] = positions_.try_emplace(items[row], next);
    if (is_new) {
      hashes_.push_back(MixId(items[row], kTieSalt));
      const absl::Span<const float> vector = vectors.subspan(row * dim, dim);
      vectors_.insert(vectors_.end(), vector.begin(), vector.end());
    }
    if (!spec_.query_feature.has_value()) continue;
    items_of_query_[batch.features[*spec_.query_feature].ids[row]].push_back(found->second);
  }
}

std::vector<RetrievalQuery> RetrievalTally::TakeQueries(const Batch& batch) {
  std::vector<RetrievalQuery> queries;
  for (size_t row = 0; row < batch.features[spec_.item_feature].ids.size(); ++row) {
    RetrievalQuery query = {row, TakeItems(batch, row), {}};
    if (query.items.empty()) continue;
    query.excluded = ExcludedBy(batch, row);
    std::vector<uint32_t> ranked;
    std::set_difference(query.items.begin(), query.items.end(), query.excluded.begin(),
                        query.excluded.end(), std::back_inserter(ranked));
    query.items = std::move(ranked);
    if (!query.items.empty()) queries.push_back(std::move(query));
  }
  return queries;
}

std::vector<uint32_t> RetrievalTally::TakeItems(const Batch& batch, size_t row) {
  if (!spec_.query_feature.has_value()) {
    return {PositionOf(batch.features[spec_.item_feature].ids[row])};
  }
  const auto found = items_of_query_.find(batch.features[*spec_.query_feature].ids[row]);
  if (found == items_of_query_.end()) return {};
  std::vector<uint32_t> items = std::move(found->second);
  items_of_query_.erase(found);
  SortDistinct(&items);
  return items;
}

std::vector<uint32_t> RetrievalTally::ExcludedBy(const Batch& batch, size_t row) const {
  std::vector<uint32_t> excluded;
  for (const size_t position : spec_.exclude_features) {
    const FeatureValues& feature = batch.features[position];
    const bool is_bag = !feature.offsets.empty();
    const size_t begin = is_bag ? feature.offsets[row] : row;
    const size_t end = is_bag ? feature.offsets[row + 1] : row + 1;
    for (size_t i = begin; i < end; ++i) {
      const auto found = positions_.find(feature.ids[i]);
      if (found != positions_.end()) excluded.push_back(found->second);
    }
  }
  SortDistinct(&excluded);
  return excluded;
}

void RetrievalTally::Add(const RetrievalQuery& query, absl::Span<const float> scores) {
  std::vector<int64_t> ranks;
  for (const uint32_t item : query.items) ranks.push_back(RankOf(item, query, scores));
  ++queries_;
  for (size_t i = 0; i < metrics_.size(); ++i) sums_[i] += ValueOf(metrics_[i], ranks);
}

int64_t RetrievalTally::RankOf(uint32_t item, const RetrievalQuery& query,
                               absl::Span<const float> scores) const {
  const float score = scores[item];
  if (std::isnan(score)) return std::numeric_limits<int64_t>::max();
  int64_t behind = 0, equal = 0;
  for (const float other : scores) {
    behind += other < score ? 1 : 0;
    equal += other == score ? 1 : 0;
  }
  int64_t before = static_cast<int64_t>(scores.size()) - behind - equal;
  if (equal > 1) {
    for (uint32_t other = 0; other < scores.size(); ++other) {
      before += scores[other] == score && IsBefore(other, item, scores) ? 1 : 0;
    }
  }
  for (const uint32_t other : query.excluded) before -= IsBefore(other, item, scores) ? 1 : 0;
  return before;
}

bool RetrievalTally::IsBefore(uint32_t other, uint32_t item, absl::Span<const float> scores) const {
  if (scores[other] == scores[item]) return hashes_[other] < hashes_[item];
  return !(scores[other] < scores[item]);
}

std::map<std::string, double> RetrievalTally::Values() const {
  std::map<std::string, double> values;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    values[metrics_[i].name()] = sums_[i] / static_cast<double>(queries_);
  }
  return values;
}

RetrievalReport RetrievalTally::Report() const {
  RetrievalReport report = {{}, static_cast<int64_t>(hashes_.size()), queries_};
  for (const MetricSpec& metric : metrics_) report.metrics.push_back(metric.name());
  return report;
}

}  // namespace keelson
