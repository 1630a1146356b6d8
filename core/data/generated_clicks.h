// Clicks of users on items, whose features are ids, with a best loss that is known: a problem for
// embeddings.
#ifndef KEELSON_CORE_DATA_GENERATED_CLICKS_H_
#define KEELSON_CORE_DATA_GENERATED_CLICKS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/data/dataset.h"
#include "core/data/record_random.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// A user and an item have a vector each, u and v, whose numbers are normal with a deviation of 0.9
// and the same for every seed. "user" is uniform; an "item" i comes more often the less it is, with
// the probability sqrt((i + 1) / kClickItems) - sqrt(i / kClickItems). "history" has none to six
// items, drawn likewise, with weights that are uniform in [0.5, 1.5); h is the mean of their
// vectors by the weights, or zeros without items. "clicked" is 1 with the probability 1 / (1 +
// exp(0.5 - (u + h) v)). "item_log_probability" is the logarithm of the item's probability.
inline constexpr int64_t kClickUsers = 100;
inline constexpr int64_t kClickItems = 50;
inline constexpr int64_t kClickNumbers = 4;
inline constexpr int64_t kMostHistory = 6;
// The expected cross-entropy of the best model in nats (the mean entropy of 3,000,000 records,
// whose standard error is 0.0001).
inline constexpr double kBestClickLoss = 0.5153;

using ClickVector = std::array<float, kClickNumbers>;
ClickVector VectorOfUser(uint64_t user);
ClickVector VectorOfItem(uint64_t item);

// Which of the records' columns a model takes, in its order.
struct ClickColumns {
  enum class Feature { kUser, kItem, kHistory };
  enum class Label { kClicked, kItemLogProbability };

  std::vector<Feature> features;
  std::vector<Label> labels;
};

// INVALID_ARGUMENT: a feature that is not "user" or "item" of the kind id or "history", a weighted
// bag; embeddings with rows for fewer ids than there are; a label that is neither "clicked", 0 or
// 1, which may be the records' weight, nor "item_log_probability", which is negative.
absl::StatusOr<ClickColumns> ClickColumnsOf(const RecordSchema& schema);

// Records [begin, end) of the stream.
std::unique_ptr<Dataset> NewGeneratedClicks(ClickColumns columns, uint64_t seed, DataSplit split,
                                            int64_t begin, int64_t end);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_GENERATED_CLICKS_H_
