// Users and the items that they choose among all items, with a best recall that is known: a problem
// for models with two towers.
#ifndef KEELSON_CORE_DATA_GENERATED_PAIRS_H_
#define KEELSON_CORE_DATA_GENERATED_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/data/dataset.h"
#include "core/data/record_random.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// What is drawn (v1::DataConfig::GeneratedPairs). A user and an item have a vector each, u and v,
// whose numbers are normal and the same for every seed. "user" is uniform, and chooses the "item" i
// with a probability proportional to (i + 1)^-exponent * exp(scale * u . v). Ids are the numbers of
// users and items from 0. "item_log_probability" is the logarithm of the mean over the users of the
// item's probability.
struct PairDistribution {
  uint32_t users = 1000;
  uint32_t items = 500;
  size_t numbers = 8;
  double scale = 1;
  double exponent = 0.5;
};
// Users times items, which bounds the memory of a PairTruth to 256 MiB.
inline constexpr int64_t kMostPairs = int64_t{1} << 26;

// INVALID_ARGUMENT: a number outside its bounds.
absl::StatusOr<PairDistribution> PairDistributionOf(const v1::DataConfig::GeneratedPairs& config);

// What the best model may expect where each record is a query, and all items are ranked. The hit
// rate is the recall.
struct BestRetrieval {
  double recall = 0;
  double ndcg = 0;
};
// At 10, of the default distribution. pair_bounds (bench/data) computes them for any distribution.
inline constexpr double kBestPairRecall = 0.64315;
inline constexpr double kBestPairNdcg = 0.44140;

// From what pairs are drawn. Immutable.
class PairTruth {
 public:
  explicit PairTruth(const PairDistribution& distribution);

  const PairDistribution& distribution() const { return distribution_; }
  // The item at the place `uniform`, of all 32 bits, of the user's distribution.
  uint32_t ItemAt(uint32_t user, uint32_t uniform) const;
  // The share of all places that are the item's.
  double ProbabilityOf(uint32_t user, uint32_t item) const;
  // Of the item among all pairs.
  float LogProbabilityOf(uint32_t item) const { return log_probabilities_[item]; }
  // Of the `k` items of each user that are the most probable, k > 0.
  BestRetrieval BestAt(int64_t k) const;

 private:
  // Of each item of the user, where its part of the distribution begins.
  absl::Span<const uint32_t> PlacesOf(uint32_t user) const {
    return absl::MakeConstSpan(below_).subspan(size_t{user} * distribution_.items,
                                               distribution_.items);
  }

  const PairDistribution distribution_;
  std::vector<uint32_t> below_;  // of all users, user by user
  std::vector<float> log_probabilities_;
};

// Which of the records' columns a model takes.
struct PairColumns {
  enum class Feature { kUser, kItem };

  std::vector<Feature> features;  // in the model's order
  size_t labels = 0;
};

// INVALID_ARGUMENT: a feature that is not "user" or "item" of the kind id; embeddings with rows for
// fewer ids than there are; a label that is not "item_log_probability", a number.
absl::StatusOr<PairColumns> PairColumnsOf(const RecordSchema& schema,
                                          const PairDistribution& distribution);

// Records [begin, end) of the stream.
std::unique_ptr<Dataset> NewGeneratedPairs(PairColumns columns,
                                           std::shared_ptr<const PairTruth> truth, uint64_t seed,
                                           DataSplit split, int64_t begin, int64_t end);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_GENERATED_PAIRS_H_
