// Batches of distinct ids for table_bench, in the order in which messages bring them.
#ifndef KEELSON_BENCH_TABLE_ID_BATCHES_H_
#define KEELSON_BENCH_TABLE_ID_BATCHES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "core/table/row_id.h"

namespace keelson::bench {

inline constexpr uint64_t kBenchSalt = 0x6b9cd3f2a1e08457;

// Distinct ids in row order: by virtual partition under kBenchSalt, then ascending.
struct IdBatch {
  std::vector<uint64_t> ids;
  // Partition p has the ids [begins[p], begins[p + 1]).
  std::array<uint32_t, kRowPartitions + 1> begins = {};

  absl::Span<const uint64_t> Partition(size_t p) const {
    return absl::MakeConstSpan(ids).subspan(begins[p], begins[p + 1] - begins[p]);
  }
};

// The id of the n-th row: any of the 2^64, as a hash of a string is.
uint64_t IdOfRow(uint64_t n);

// Sorts the ids, which are distinct.
IdBatch InRowOrder(std::vector<uint64_t> ids);

// A batch of `size` distinct ids of rows that `draw` gives, called as often as it takes.
IdBatch DrawBatch(size_t size, const std::function<uint64_t()>& draw);

// Rows of [0, rows) by a power law: the n-th is drawn about in proportion to (n + 1)^-exponent,
// which is not 1.
class PowerLaw {
 public:
  PowerLaw(uint64_t rows, double exponent);

  // `uniform` in [0, 1).
  uint64_t Draw(double uniform) const;

 private:
  const uint64_t rows_;
  const double exponent_;  // of the integral: 1 - the law's
  const double range_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_ID_BATCHES_H_
