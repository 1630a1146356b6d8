#include "dashboard/api/item_vectors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/status_macros.h"
#include "core/model/evaluation_pass.h"
#include "core/model/spec/batch.h"

namespace keelson {
namespace {

constexpr int64_t kItemsAtATime = 256;

bool IsNearer(const NearItem& a, const NearItem& b) {
  if (std::isnan(a.score) != std::isnan(b.score)) return std::isnan(b.score);
  if (a.score != b.score && !std::isnan(a.score)) return a.score > b.score;
  return a.id < b.id;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ItemVectors>> ItemVectors::Create(const ReadableRecords& items,
                                                                 size_t feature, StoredModel* model,
                                                                 Device* device) {
  std::vector<uint64_t> ids;
  std::vector<float> vectors;
  std::vector<int64_t> records;
  for (int64_t begin = 0; begin < items.size(); begin += kItemsAtATime) {
    records.resize(std::min(kItemsAtATime, items.size() - begin));
    std::iota(records.begin(), records.end(), begin);
    Batch batch;
    RETURN_IF_ERROR(items.Read(records, &batch));
    PairVectors pairs;
    RETURN_IF_ERROR(model->PredictPairs(&batch, &pairs));
    const std::vector<uint64_t>& of_batch = batch.features[feature].ids;
    ids.insert(ids.end(), of_batch.begin(), of_batch.end());
    vectors.insert(vectors.end(), pairs.items.begin(), pairs.items.end());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ItemScores> scores,
                   ItemScores::Create(device, model->spec().main_loss().dim, vectors));
  return std::unique_ptr<ItemVectors>(new ItemVectors(std::move(ids), std::move(scores)));
}

absl::StatusOr<std::vector<NearItem>> ItemVectors::Nearest(
    absl::Span<const float> query, size_t count, const absl::flat_hash_set<uint64_t>& excluded) {
  std::vector<NearItem> items;
  RETURN_IF_ERROR(scores_->Score(query, [&](size_t, absl::Span<const float> scores) {
    for (size_t i = 0; i < scores.size(); ++i) {
      if (!excluded.contains(ids_[i])) items.push_back({ids_[i], scores[i]});
    }
  }));
  const size_t kept = std::min(count, items.size());
  std::partial_sort(items.begin(), items.begin() + static_cast<int64_t>(kept), items.end(),
                    IsNearer);
  items.resize(kept);
  return items;
}

}  // namespace keelson
