#include "ps_server/units/hot_ids.h"

#include <algorithm>

namespace keelson {

void HotIds::Add(uint64_t id) {
  MutexLock lock(&mu_);
  const auto found = counts_.find(id);
  if (found != counts_.end()) {
    ++found->second;
    return;
  }
  if (counts_.size() < kCounted) {
    counts_.emplace(id, 1);
    return;
  }
  ++taken_off_;
  absl::erase_if(counts_, [](auto& count) { return --count.second == 0; });
}

std::vector<HotIds::Count> HotIds::Top(size_t most) const {
  std::vector<Count> top;
  {
    MutexLock lock(&mu_);
    for (const auto& [id, count] : counts_) top.push_back({id, count, taken_off_});
  }
  const size_t n = std::min(most, top.size());
  std::partial_sort(top.begin(), top.begin() + static_cast<int64_t>(n), top.end(),
                    [](const Count& a, const Count& b) {
                      return a.count != b.count ? a.count > b.count : a.id < b.id;
                    });
  top.resize(n);
  return top;
}

}  // namespace keelson
