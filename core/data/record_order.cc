#include "core/data/record_order.h"

#include "core/base/random.h"

namespace keelson {
namespace {

// Four suffice for pseudo-randomness in theory; tiny domains mix better with more.
constexpr uint64_t kRounds = 6;

int HalfBits(uint64_t num_records) {
  int bits = 1;
  while (bits < 32 && (uint64_t{1} << (2 * bits)) < num_records) ++bits;
  return bits;
}

}  // namespace

RecordOrder::RecordOrder(int64_t num_records, uint64_t seed, int64_t epoch, bool sequential)
    : num_records_(static_cast<uint64_t>(num_records)),
      key_(StableHash("record order", seed)),
      epoch_(static_cast<uint64_t>(epoch)),
      sequential_(sequential),
      half_bits_(HalfBits(num_records_)) {}

int64_t RecordOrder::Record(int64_t position) const {
  if (sequential_) return position;
  uint64_t record = Permute(static_cast<uint64_t>(position));
  while (record >= num_records_) record = Permute(record);
  return static_cast<int64_t>(record);
}

uint64_t RecordOrder::Permute(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    // half_bits_ is at most 32, so the round number has the counter's upper half for itself.
    const uint64_t mixed = Philox(key_, epoch_, round << 32 | right)[0] & mask;
    const uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace keelson
