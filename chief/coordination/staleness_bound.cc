#include "chief/coordination/staleness_bound.h"

#include <algorithm>

namespace keelson {

int64_t StalenessBound::SlowestClock() const {
  if (clocks_.empty()) return 0;
  const auto slowest = std::min_element(
      clocks_.begin(), clocks_.end(),
      [](const auto& a, const auto& b) { return a.second.completed < b.second.completed; });
  return slowest->second.completed;
}

void StalenessBound::Join(uint64_t worker, int64_t outstanding) {
  const int64_t start = SlowestClock();
  clocks_.try_emplace(worker, Clock{start + outstanding, start});
}

int64_t StalenessBound::Allowance(uint64_t worker) const {
  return std::max<int64_t>(SlowestClock() + staleness_ + 1 - clocks_.at(worker).granted, 0);
}

void StalenessBound::Granted(uint64_t worker, int64_t tickets) {
  clocks_.at(worker).granted += tickets;
}

void StalenessBound::Completed(uint64_t worker, int64_t tickets) {
  const auto it = clocks_.find(worker);
  if (it != clocks_.end()) it->second.completed += tickets;
}

}  // namespace keelson
