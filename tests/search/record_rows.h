// The table of the record model: its rows count, as the elements of its variables do.
#ifndef KEELSON_TESTS_SEARCH_RECORD_ROWS_H_
#define KEELSON_TESTS_SEARCH_RECORD_ROWS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/bundle_reader.h"

namespace keelson {

inline constexpr char kRecordTable[] = "rows";
inline constexpr int64_t kRecordTableDim = 3;

// In each of these partitions every record has two rows: one that all records have, and one of its
// own. A job of two or three servers has some of them in every shard.
inline constexpr std::array<uint32_t, 4> kCountedPartitions = {10, 84, 85, 200};

// The rows of one of kCountedPartitions as they count.
struct RowCounts {
  float common = 0;
  std::vector<float> own;  // by record
};

// Immutable.
class RecordRows {
 public:
  // Rows expire after so many steps; 0: they do not.
  explicit RecordRows(int64_t records, int64_t expire_after = 0);

  // By partition its common id, then the record's own.
  std::vector<uint64_t> IdsOf(int64_t record) const;

  // The counts in a snapshot, by counted partition; what has no row counts 0. An update adds `rate`
  // to a common row, and to own ones together. DATA_LOSS: a row of an id that no record has, one
  // whose elements differ or are not what its number of updates says, or a partition whose own
  // rows do not sum up to the common one, unless rows expire; a snapshot without the table. A row
  // that has expired counts 0. Errors of StoredTables.
  absl::StatusOr<std::vector<RowCounts>> ReadCounts(const BundleReader& snapshot,
                                                    double rate) const;

 private:
  // What an id stands for: -1 is the common row.
  struct Meaning {
    size_t partition = 0;
    int64_t record = -1;
  };

  const int64_t records_;
  const int64_t expire_after_;
  std::vector<std::vector<uint64_t>> ids_;  // by counted partition; the common one first
  std::map<uint64_t, Meaning> meanings_;    // by id
};

// Of a shard, of whose variables `sums` has the sum of all elements, and of whose counted
// partitions the common row's: a push, or a round, is in all of them or in none. Returns what is
// wrong; empty: nothing.
std::string CheckSums(const std::map<std::string, double>& sums);

// CheckSums of each of the `shards` of a snapshot of the record model with a table. `count_of` says
// how much the sum of a variable's elements counts.
std::string CheckShardSums(
    const BundleReader& snapshot, const std::vector<RowCounts>& counts, int64_t records,
    size_t shards, const std::function<double(const std::string& variable, double sum)>& count_of);

// What a worker has read of the rows of IdsOf, [ids, kRecordTableDim]: all elements of a row are
// equal, whole multiples of `unit`, and an own row counts no more than the common one of its
// partition, unless rows expire. Returns what is wrong; empty: nothing.
std::string CheckReadRows(const std::vector<float>& rows, float unit, bool expire = false);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_RECORD_ROWS_H_
