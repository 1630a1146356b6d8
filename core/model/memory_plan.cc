#include "core/model/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/random.h"
#include "core/device/memory_view.h"

namespace keelson {
namespace {

// The planner tries many orders of a small graph and none of a large one, so that a plan takes
// about a millisecond.
constexpr size_t kMostTries = 200;
constexpr size_t kTriedPairs = 400'000;

bool Meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Places the values one after the other.
class Placer {
 public:
  explicit Placer(absl::Span<const Lifetime> values) : values_(values) {
    plan_.begin.resize(values.size());
  }

  MemoryPlan Place(const std::vector<size_t>& order) {
    for (const size_t value : order) {
      const int64_t begin = GapFor(values_[value]);
      plan_.begin[value] = begin;
      plan_.floats = std::max(plan_.floats, begin + MemoryView::Aligned(values_[value].floats));
      const auto after =
          std::upper_bound(placed_.begin(), placed_.end(), begin,
                           [&](int64_t b, size_t other) { return b < plan_.begin[other]; });
      placed_.insert(after, value);
    }
    return std::move(plan_);
  }

 private:
  // Where the lowest gap begins that has room among those that exist at the same time.
  int64_t GapFor(const Lifetime& value) const {
    int64_t end = 0;
    for (const size_t other : placed_) {
      if (!Meet(values_[other], value)) continue;
      if (plan_.begin[other] >= end + MemoryView::Aligned(value.floats)) return end;
      end = std::max(end, plan_.begin[other] + MemoryView::Aligned(values_[other].floats));
    }
    return end;
  }

  const absl::Span<const Lifetime> values_;
  MemoryPlan plan_;
  std::vector<size_t> placed_;  // by where they begin
};

// The best one of those by size, time and duration.
std::vector<size_t> BestOrder(absl::Span<const Lifetime> values) {
  // What has the lowest rank is placed first.
  using Rank = int64_t (*)(const Lifetime&);
  constexpr Rank kRanks[] = {
      [](const Lifetime& value) { return -value.floats; },
      [](const Lifetime& value) { return int64_t{value.first}; },
      [](const Lifetime& value) { return int64_t{-value.last}; },
      [](const Lifetime& value) { return -value.floats * (value.last - value.first + 1); },
      [](const Lifetime& value) { return int64_t{value.first - value.last}; },
  };
  std::vector<size_t> best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Rank rank : kRanks) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return rank(values[a]) < rank(values[b]); });
    const int64_t floats = Placer(values).Place(order).floats;
    if (floats >= least) continue;
    least = floats;
    best = std::move(order);
  }
  return best;
}

}  // namespace

MemoryPlan PlanMemory(absl::Span<const Lifetime> values) {
  if (values.empty()) return {};
  std::vector<size_t> order = BestOrder(values);
  MemoryPlan best = Placer(values).Place(order);
  const int64_t least = LeastFloats(values);
  const size_t tries = std::min(kMostTries, kTriedPairs / (values.size() * values.size()));
  for (size_t i = 0; i < tries && best.floats > least; ++i) {
    const auto random = Philox(values.size(), StableHash("memory plan"), i);
    std::vector<size_t> other = order;
    std::swap(other[random[0] % other.size()], other[random[1] % other.size()]);
    MemoryPlan plan = Placer(values).Place(other);
    if (plan.floats > best.floats) continue;
    best = std::move(plan);
    order = std::move(other);
  }
  return best;
}

int64_t LeastFloats(absl::Span<const Lifetime> values) {
  int64_t most = 0;
  // The most exist when one of them begins.
  for (const Lifetime& moment : values) {
    int64_t floats = 0;
    for (const Lifetime& value : values) {
      if (value.first <= moment.first && moment.first <= value.last) floats += value.floats;
    }
    most = std::max(most, floats);
  }
  return most;
}

}  // namespace keelson
