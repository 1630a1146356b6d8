// How well queries find their items among all items: recall, hit rate and NDCG.
#ifndef KEELSON_CORE_SCORING_RETRIEVAL_TALLY_H_
#define KEELSON_CORE_SCORING_RETRIEVAL_TALLY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/metrics.h"
#include "core/scoring/report.h"

namespace keelson {

struct RetrievalQuery {
  size_t row = 0;  // of the batch, whose vector is the query's
  // Positions of items, ascending and distinct: those to be found, of which none is in the next,
  // and those that are not ranked.
  std::vector<uint32_t> items;
  std::vector<uint32_t> excluded;
};

// Takes the batches of an evaluation twice: items and queries are known when all have been there.
// An item's vector is that of the first record that has it, and a query's that of its first record.
// Of equal scores the item comes first whose id's hash is less, so that a model that scores all
// items the same has the figures of a random order. A score that is not a number counts as higher
// than any other, and an item to be found that has one is not found. Memory grows with the items
// and, where records are grouped to queries, with the records. Not thread-safe.
class RetrievalTally {
 public:
  // What ids are hashed with (MixId) where scores are equal.
  static constexpr uint64_t kTieSalt = 0x6974656d74696573;

  // `metrics` are those that rank alike, MetricSpec::retrieval.
  explicit RetrievalTally(std::vector<MetricSpec> metrics);

  // At first of each batch. `vectors`, [rows, dim], are those of the rows' items.
  void AddItems(const Batch& batch, absl::Span<const float> vectors);
  // Those of all distinct items, [items, dim].
  absl::Span<const float> item_vectors() const { return vectors_; }

  // Then of each batch again: the queries whose first record is there, and that have an item to be
  // found. Each query is returned once.
  std::vector<RetrievalQuery> TakeQueries(const Batch& batch);
  // `scores` are the query's for all items in their order.
  void Add(const RetrievalQuery& query, absl::Span<const float> scores);

  // The means over the queries that were added, by the metrics' names; not-a-number without any.
  std::map<std::string, double> Values() const;
  RetrievalReport Report() const;

 private:
  // The position of the item, which AddItems has had.
  uint32_t PositionOf(uint64_t item) const { return positions_.at(item); }
  // The items of the query of this row; empty: it is none, or was taken.
  std::vector<uint32_t> TakeItems(const Batch& batch, size_t row);
  std::vector<uint32_t> ExcludedBy(const Batch& batch, size_t row) const;
  // How many items that are ranked stand before this one of the query.
  int64_t RankOf(uint32_t item, const RetrievalQuery& query, absl::Span<const float> scores) const;
  bool IsBefore(uint32_t other, uint32_t item, absl::Span<const float> scores) const;

  const std::vector<MetricSpec> metrics_;
  const RetrievalSpec spec_;
  absl::flat_hash_map<uint64_t, uint32_t> positions_;  // by id
  std::vector<uint64_t> hashes_;                       // of the items' ids
  std::vector<float> vectors_;
  // The items of queries that have not been taken, by the query's id, where records are grouped.
  absl::flat_hash_map<uint64_t, std::vector<uint32_t>> items_of_query_;
  int64_t queries_ = 0;
  std::vector<double> sums_;  // by metric
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_RETRIEVAL_TALLY_H_
