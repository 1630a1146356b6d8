// The items of a model of two towers that are nearest to a query.
#ifndef KEELSON_DASHBOARD_API_ITEM_VECTORS_H_
#define KEELSON_DASHBOARD_API_ITEM_VECTORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/data/readable_records.h"
#include "core/device/device.h"
#include "core/model/item_scores.h"
#include "core/stored_model/stored_model.h"
#include "dashboard/api/predictor.h"

namespace keelson {

// The vectors of all items under the values of one snapshot. Not thread-safe.
class ItemVectors {
 public:
  // `items` has a record for each item, in the form of the model's features, of which `feature` has
  // the item's id. `device` outlives this. Errors of ReadableRecords::Read, StoredModel and
  // ItemScores.
  static absl::StatusOr<std::unique_ptr<ItemVectors>> Create(const ReadableRecords& items,
                                                             size_t feature, StoredModel* model,
                                                             Device* device);

  int64_t size() const { return static_cast<int64_t>(ids_.size()); }

  // The `count` items of the greatest scores for a query, but for those of `excluded`. Of equal
  // scores the lesser id comes first; a score that is not a number comes last. Errors of
  // ItemScores.
  absl::StatusOr<std::vector<NearItem>> Nearest(absl::Span<const float> query, size_t count,
                                                const absl::flat_hash_set<uint64_t>& excluded);

 private:
  ItemVectors(std::vector<uint64_t> ids, std::unique_ptr<ItemScores> scores)
      : ids_(std::move(ids)), scores_(std::move(scores)) {}

  const std::vector<uint64_t> ids_;
  const std::unique_ptr<ItemScores> scores_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_ITEM_VECTORS_H_
