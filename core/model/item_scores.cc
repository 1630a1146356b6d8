#include "core/model/item_scores.h"

#include <algorithm>

#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int64_t kMostScores = int64_t{1} << 22;
constexpr int64_t kMostQueries = 1024;

}  // namespace

ItemScores::ItemScores(Device* device, int64_t dim, int64_t num_items)
    : device_(device),
      dim_(dim),
      num_items_(num_items),
      most_queries_(std::clamp<int64_t>(kMostScores / num_items, 1, kMostQueries)) {}

absl::StatusOr<std::unique_ptr<ItemScores>> ItemScores::Create(Device* device, int64_t dim,
                                                               absl::Span<const float> items) {
  const int64_t num_items = static_cast<int64_t>(items.size()) / dim;
  std::unique_ptr<ItemScores> scores(new ItemScores(device, dim, num_items));
  RETURN_IF_ERROR(scores->Allocate());
  device->CopyToDevice(items, scores->items_.get());
  return scores;
}

absl::Status ItemScores::Allocate() {
  ASSIGN_OR_RETURN(items_, device_->Allocate(num_items_ * dim_));
  ASSIGN_OR_RETURN(queries_, device_->Allocate(most_queries_ * dim_));
  ASSIGN_OR_RETURN(scores_, device_->Allocate(most_queries_ * num_items_));
  return absl::OkStatus();
}

absl::Status ItemScores::Score(absl::Span<const float> queries, TakeScores take) {
  const int64_t all = static_cast<int64_t>(queries.size()) / dim_;
  for (int64_t begin = 0; begin < all; begin += most_queries_) {
    const int64_t n = std::min(most_queries_, all - begin);
    device_->CopyToDevice(queries.subspan(begin * dim_, n * dim_), queries_.get());
    device_->MatMul({.m = n, .n = num_items_, .k = dim_, .transpose_b = true}, *queries_, *items_,
                    {}, scores_.get());
    host_scores_.resize(n * num_items_);
    RETURN_IF_ERROR(device_->CopyToHost(*scores_, absl::MakeSpan(host_scores_)));
    for (int64_t i = 0; i < n; ++i) {
      take(static_cast<size_t>(begin + i),
           absl::MakeConstSpan(host_scores_).subspan(i * num_items_, num_items_));
    }
  }
  return absl::OkStatus();
}

}  // namespace keelson
