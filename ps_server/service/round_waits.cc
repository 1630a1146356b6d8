#include "ps_server/service/round_waits.h"

#include <utility>
#include <vector>

namespace keelson {

bool RoundWaits::MayGoOn(int64_t round, absl::FunctionRef<int64_t()> committed,
                         std::function<void()> wake) {
  MutexLock lock(&mu_);
  if (committed() >= round) return true;
  waiting_.emplace(round, std::move(wake));
  return false;
}

void RoundWaits::WakeUpTo(int64_t round) {
  std::vector<std::function<void()>> over;
  {
    MutexLock lock(&mu_);
    const auto end = waiting_.upper_bound(round);
    for (auto wait = waiting_.begin(); wait != end; ++wait) over.push_back(std::move(wait->second));
    waiting_.erase(waiting_.begin(), end);
  }
  for (const std::function<void()>& wake : over) wake();
}

}  // namespace keelson
