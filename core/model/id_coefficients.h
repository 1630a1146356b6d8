// The ids of a batch as a sparse matrix, computed on the host.
#ifndef KEELSON_CORE_MODEL_ID_COEFFICIENTS_H_
#define KEELSON_CORE_MODEL_ID_COEFFICIENTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/layer_spec.h"

namespace keelson {

// The matrix [examples, ids] of a part of a batch, by examples and transposed, in the form of
// SparseRows. An id that is twice in an example has two entries. Its memory is used again by the
// next Set.
class IdEntries {
 public:
  // Takes records [first, first + examples) of values that CheckFeatures accepts. `ids` are those
  // of the values, or the positions that stand for them. The weights must stay until the next Set.
  template <typename Id>
  void Set(const FeatureValues& values, const std::vector<Id>& ids, int64_t first,
           int64_t examples) {
    const int64_t begin = SetRecords(values, first, examples);
    for (size_t k = 0; k < ids_.size(); ++k) ids_[k] = static_cast<int32_t>(ids[begin + k]);
  }
  // Makes the transposed matrix: distinct_ids and what follows it.
  void Transpose();

  // By examples: [examples + 1], and the id of each entry.
  absl::Span<const int32_t> offsets() const { return offsets_; }
  absl::Span<const int32_t> ids() const { return ids_; }
  // The weights of the entries; empty: all are 1.
  absl::Span<const float> weights() const { return weights_; }
  // Transposed: the distinct ids, ascending; where the entries of each begin, [distinct ids + 1];
  // the example of each entry; and its position among the entries by examples. Entries of one id
  // are in the order of the examples.
  absl::Span<const int32_t> distinct_ids() const { return distinct_ids_; }
  absl::Span<const int32_t> id_offsets() const { return id_offsets_; }
  absl::Span<const int32_t> examples() const { return examples_; }
  absl::Span<const int32_t> positions() const { return positions_; }

 private:
  // Sets all but the ids, which begin at the returned position among those of the values.
  int64_t SetRecords(const FeatureValues& values, int64_t first, int64_t examples);

  std::vector<int32_t> offsets_;
  std::vector<int32_t> ids_;
  absl::Span<const float> weights_;
  std::vector<int32_t> distinct_ids_;
  std::vector<int32_t> id_offsets_;
  std::vector<int32_t> examples_;
  std::vector<int32_t> positions_;
  // An entry's id is in the upper half, its position in the lower; sorted_ is memory for the sort.
  std::vector<uint64_t> order_;
  std::vector<uint64_t> sorted_;
  std::vector<int32_t> example_of_;
};

// The coefficients of the entries by examples, into `coefficients`. Of an example with the weights
// w (1 without weights): w with kSum, w / sum of w with kMean, w / sqrt(sum of w^2) with kSqrtN,
// and 0 where that sum is 0. Source: TensorFlow's embedding_lookup_sparse.
void CoefficientsOf(const IdEntries& entries, Combiner combiner, absl::Span<float> coefficients);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_ID_COEFFICIENTS_H_
