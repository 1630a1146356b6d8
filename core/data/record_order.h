// The order in which an epoch visits the records.
#ifndef KEELSON_CORE_DATA_RECORD_ORDER_H_
#define KEELSON_CORE_DATA_RECORD_ORDER_H_

#include <cstdint>

namespace keelson {

// A bijection from positions [0, n) to records [0, n) that every task computes by itself, in
// constant memory: a Feistel network of Philox rounds over the next power of four, walked until
// it lands below n. Sequential order is the identity. With groups the order is one of groups of
// records that follow one another, and one of the records within each group, so that positions that
// are close have records that are; a last group that is smaller has its place among the others.
// Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002 (cycle walking).
class RecordOrder {
 public:
  // Another (seed, epoch) is another order. `group`: records of a group; 0 and 1: no groups.
  // Requires num_records > 0 and epoch >= 0.
  RecordOrder(int64_t num_records, uint64_t seed, int64_t epoch, bool sequential,
              int64_t group = 0);

  // The record at `position`, which must be in [0, num_records).
  int64_t Record(int64_t position) const;

 private:
  // A bijection of [0, size); another `tweak` is another one.
  uint64_t Permute(uint64_t value, uint64_t size, uint64_t tweak) const;
  uint64_t RecordOfGroups(uint64_t position) const;

  const uint64_t num_records_;
  const uint64_t key_;
  const uint64_t epoch_;
  const bool sequential_;
  const uint64_t group_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_ORDER_H_
