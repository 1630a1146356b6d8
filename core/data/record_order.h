// The order in which an epoch visits the records.
#ifndef KEELSON_CORE_DATA_RECORD_ORDER_H_
#define KEELSON_CORE_DATA_RECORD_ORDER_H_

#include <cstdint>

namespace keelson {

// A bijection from positions [0, n) to records [0, n) that every task computes by itself, in
// constant memory: a Feistel network of Philox rounds over the next power of four, walked until
// it lands below n. Sequential order is the identity.
// Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002 (cycle walking).
class RecordOrder {
 public:
  // Another (seed, epoch) is another order. Requires num_records > 0 and epoch >= 0.
  RecordOrder(int64_t num_records, uint64_t seed, int64_t epoch, bool sequential);

  // The record at `position`, which must be in [0, num_records).
  int64_t Record(int64_t position) const;

 private:
  uint64_t Permute(uint64_t value) const;

  const uint64_t num_records_;
  const uint64_t key_;
  const uint64_t epoch_;
  const bool sequential_;
  const int half_bits_;  // the network permutes [0, 4^half_bits)
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_ORDER_H_
