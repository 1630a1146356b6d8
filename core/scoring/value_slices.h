// How good the probabilities of binary labels are for each id of a feature, and for ids by how
// often they come.
#ifndef KEELSON_CORE_SCORING_VALUE_SLICES_H_
#define KEELSON_CORE_SCORING_VALUE_SLICES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/scoring/binary_totals.h"

namespace keelson {

// The examples that have one id.
struct ValueSlice {
  uint64_t id = 0;
  BinaryTotals totals;
};

// The examples whose ids come in at least `from` and at most `to` of the examples.
struct FrequencySlice {
  int64_t from = 0;
  int64_t to = 0;
  int64_t ids = 0;
  BinaryTotals totals;
};

// Keeps up to kMostIds ids, the ones that come first, in 5 MiB; the examples of others are summed
// up together. Not thread-safe.
class ValueSlices {
 public:
  static constexpr size_t kMostIds = size_t{1} << 16;

  // `most_ids` > 0: fewer for tests.
  explicit ValueSlices(size_t most_ids = kMostIds) : most_ids_(most_ids) {}

  // A higher score means that the label 1 is more likely.
  void Add(uint64_t id, float score, bool positive);

  // The ids with the most examples, up to `most` of them, in that order; of as many examples the
  // lesser id first.
  std::vector<ValueSlice> MostFrequent(size_t most) const;
  // Ids of 1, of 2 to 3, of 4 to 7 examples, and so on, without those of which there are none.
  std::vector<FrequencySlice> ByFrequency() const;

  // The ids that were kept.
  size_t ids() const { return ids_.size(); }
  // The examples of ids that were not.
  const BinaryTotals& others() const { return others_; }

 private:
  const size_t most_ids_;
  absl::flat_hash_map<uint64_t, BinaryTotals> ids_;
  BinaryTotals others_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_VALUE_SLICES_H_
