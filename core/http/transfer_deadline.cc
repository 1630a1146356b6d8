#include "core/http/transfer_deadline.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace keelson {

void TransferDeadline::Set(absl::Duration from_now) {
  until_ = clock_->Monotonic() + from_now;
  progress_before_ = Progress();
}

absl::Duration TransferDeadline::TimeLeft() const {
  const absl::Duration left = until_ - clock_->Monotonic();
  // Progress only extends it, and asking for it is a call of the system.
  if (left > absl::ZeroDuration()) return left;
  const double seconds = static_cast<double>(Progress() - progress_before_) / kBytesPerSecond;
  return left + absl::Seconds(std::max(seconds, 0.0));
}

int64_t TransferDeadline::Progress() const {
  // The client has not yet received the bytes in the system's send buffer, which may be megabytes.
  int on_the_way = 0;
  ioctl(fd_, SIOCOUTQ, &on_the_way);
  return moved_ - on_the_way;
}

}  // namespace keelson
