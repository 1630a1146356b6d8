// The initial values of an embedding table's rows. They are a function of (seed, table, id), so
// that a row which nobody has changed needs neither memory nor bytes on the wire: server, worker
// and evaluator compute the same bits, in any order.
#ifndef KEELSON_CORE_TABLE_INITIAL_ROWS_H_
#define KEELSON_CORE_TABLE_INITIAL_ROWS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/tensor/variable.h"

namespace keelson {

// Immutable. Part of what snapshots mean: the values of an id never change.
//
// Element e of a row is computed from Philox(key = MixId(seed, salt), stream = id, counter):
// uniform: word e % 4 of counter e / 4; normal: Box and Muller's pair of words 2 k and 2 k + 1 of
// counter e / 4 gives the elements 2 k (cosine) and 2 k + 1 (sine) of those four; truncated normal:
// the normal value if it lies within two standard deviations, else the first value that does of
// the cosines of the words (0, 1) and (2, 3) of the counters draw * 2^32 + e, draw = 1, 2, ...
class InitialRows {
 public:
  // `salt` is the table's (TableSalt).
  InitialRows(const Initializer& initializer, uint64_t seed, uint64_t salt);

  // Writes the row's initial values; out.size() is the table's dim.
  void Fill(uint64_t id, absl::Span<float> out) const;

 private:
  const Initializer initializer_;
  const uint64_t key_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_INITIAL_ROWS_H_
