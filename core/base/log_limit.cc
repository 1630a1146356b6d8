#include "core/base/log_limit.h"

#include <utility>

namespace keelson {

std::optional<int64_t> LogLimit::Admit() {
  MutexLock lock(&mu_);
  const absl::Duration now = clock_->Monotonic();
  if (++asked_ > kOneByOne && now < admitted_at_ + absl::Seconds(1)) {
    ++left_out_;
    return std::nullopt;
  }
  admitted_at_ = now;
  return std::exchange(left_out_, 0);
}

}  // namespace keelson
