// Where in one block of memory a pass's values are.
#ifndef KEELSON_CORE_MODEL_MEMORY_PLAN_H_
#define KEELSON_CORE_MODEL_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace keelson {

// A value of so many floats that exists from one moment to another, both included.
struct Lifetime {
  int64_t floats = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  int64_t floats = 0;          // of the block
  std::vector<int64_t> begin;  // by value, multiples of MemoryView::kAlignedFloats
};

// Values that exist at the same moment do not overlap. The smallest block is NP-hard to find. This
// is the best order that was found in which each value takes the lowest gap among those that are
// placed already (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
// MLSys workshop 2020): of those by size, time and duration, in which values then change places
// while there is hope. The same values have the same plan.
MemoryPlan PlanMemory(absl::Span<const Lifetime> values);

// The floats that exist at the moment with the most: no plan has less.
int64_t LeastFloats(absl::Span<const Lifetime> values);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_MEMORY_PLAN_H_
