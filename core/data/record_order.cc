#include "core/data/record_order.h"

#include <algorithm>

#include "core/base/random.h"

namespace keelson {
namespace {

// Four suffice for pseudo-randomness in theory; tiny domains mix better with more.
constexpr uint64_t kRounds = 6;

// The network permutes [0, 4^bits).
int HalfBits(uint64_t size) {
  int bits = 1;
  while (bits < 32 && (uint64_t{1} << (2 * bits)) < size) ++bits;
  return bits;
}

uint64_t Network(uint64_t key, uint64_t epoch, int half_bits, uint64_t value) {
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = value >> half_bits, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    // half_bits is at most 32, so the round number has the counter's upper half for itself.
    const uint64_t mixed = Philox(key, epoch, round << 32 | right)[0] & mask;
    const uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

}  // namespace

RecordOrder::RecordOrder(int64_t num_records, uint64_t seed, int64_t epoch, bool sequential,
                         int64_t group)
    : num_records_(static_cast<uint64_t>(num_records)),
      key_(StableHash("record order", seed)),
      epoch_(static_cast<uint64_t>(epoch)),
      sequential_(sequential),
      group_(static_cast<uint64_t>(std::max<int64_t>(group, 1))) {}

int64_t RecordOrder::Record(int64_t position) const {
  if (sequential_) return position;
  const auto value = static_cast<uint64_t>(position);
  return static_cast<int64_t>(group_ == 1 ? Permute(value, num_records_, 0)
                                          : RecordOfGroups(value));
}

uint64_t RecordOrder::RecordOfGroups(uint64_t position) const {
  const uint64_t groups = num_records_ / group_, rest = num_records_ % group_;
  // The place of the smaller group among the others.
  const uint64_t before = Philox(StableHash("smaller group", key_), epoch_, 0)[0] % (groups + 1);
  const uint64_t rest_begin = before * group_;
  if (position >= rest_begin && position < rest_begin + rest) {
    return groups * group_ + Permute(position - rest_begin, rest, groups + 1);
  }
  if (position >= rest_begin) position -= rest;
  const uint64_t group = Permute(position / group_, groups, 0);
  return group * group_ + Permute(position % group_, group_, group + 1);
}

uint64_t RecordOrder::Permute(uint64_t value, uint64_t size, uint64_t tweak) const {
  const int half_bits = HalfBits(size);
  const uint64_t key = tweak == 0 ? key_ : StableHash("record order of a group", key_ ^ tweak);
  do {
    value = Network(key, epoch_, half_bits, value);
  } while (value >= size);
  return value;
}

}  // namespace keelson
