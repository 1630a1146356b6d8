// The pushes that a shard has applied: the newest sequence of each incarnation, by unit.
#ifndef KEELSON_PS_SERVER_UNITS_APPLIED_SEQUENCES_H_
#define KEELSON_PS_SERVER_UNITS_APPLIED_SEQUENCES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "core/base/mutex.h"

namespace keelson {

// Units [begin, end) have applied the same newest push of an incarnation.
struct SequenceRun {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint64_t sequence = 0;

  friend bool operator==(const SequenceRun&, const SequenceRun&) = default;
};

// One incarnation's: disjoint and in order. A unit without a run has applied nothing of it.
using SequenceRuns = std::vector<SequenceRun>;

// The newest push that the unit has applied. Nothing: none.
std::optional<uint64_t> NewestAt(const SequenceRuns& runs, size_t unit);

// By incarnation.
using SequenceTable = std::map<uint64_t, SequenceRuns>;

// A push brings something for every unit of a shard, so an incarnation has one run, and a few more
// while its messages arrive: what is kept does not grow with the number of units. Units are the
// shard's blocks, counted in the order of its partitions. Thread-safe.
class AppliedSequences {
 public:
  // Notes that the unit applies this push. False, and nothing changes: it has applied this one or a
  // later one of the same incarnation.
  bool Take(size_t unit, uint64_t incarnation, uint64_t sequence);

  // Notes what the unit had applied when it was stored.
  void Restore(size_t unit, uint64_t incarnation, uint64_t sequence);

  // Forgets all incarnations but these (sorted).
  void Keep(absl::Span<const uint64_t> incarnations);

  SequenceTable Table() const;

 private:
  // Parts of the table by incarnation, so that threads that apply different workers' pushes seldom
  // meet.
  struct Stripe {
    mutable Mutex mu;
    std::unordered_map<uint64_t, SequenceRuns> runs ABSL_GUARDED_BY(mu);
  };

  Stripe& StripeOf(uint64_t incarnation) { return stripes_[incarnation % stripes_.size()]; }

  std::array<Stripe, 16> stripes_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_APPLIED_SEQUENCES_H_
