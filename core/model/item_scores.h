// The scores of queries for many items, such as all that there are.
#ifndef KEELSON_CORE_MODEL_ITEM_SCORES_H_
#define KEELSON_CORE_MODEL_ITEM_SCORES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"

namespace keelson {

// A score is the product of a query's vector and an item's. On the device the items have a float
// for each element, and the scores of some queries at a time at most 2^22, or those of one query.
// Not thread-safe.
class ItemScores {
 public:
  using TakeScores = absl::FunctionRef<void(size_t query, absl::Span<const float> scores)>;

  // `items` are one or more vectors, [items, dim]. The device must outlive the object. Errors: the
  // device's; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<ItemScores>> Create(Device* device, int64_t dim,
                                                            absl::Span<const float> items);

  // Calls `take` for each of the queries, [queries, dim], in turn, with its scores for all items in
  // their order. Errors: the device's.
  absl::Status Score(absl::Span<const float> queries, TakeScores take);

 private:
  ItemScores(Device* device, int64_t dim, int64_t num_items);

  absl::Status Allocate();

  Device* const device_;
  const int64_t dim_;
  const int64_t num_items_;
  const int64_t most_queries_;  // at a time
  std::unique_ptr<DeviceMemory> items_;
  std::unique_ptr<DeviceMemory> queries_;
  std::unique_ptr<DeviceMemory> scores_;
  std::vector<float> host_scores_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_ITEM_SCORES_H_
