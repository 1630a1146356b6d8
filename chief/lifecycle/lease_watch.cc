#include "chief/lifecycle/lease_watch.h"

#include <algorithm>

#include "core/base/log.h"

namespace keelson {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(100);

}  // namespace

void LeaseWatch::Run(const StopSignal& end) {
  do {
    Look();
  } while (!end.WaitFor(kPause));
}

void LeaseWatch::Look() {
  const absl::Duration now = process_clock_->Monotonic();
  // This process was frozen, or starved: what members sent meanwhile has not been received.
  const absl::Duration late = now - last_look_.value_or(now) - kPause;
  if (late >= options_.lease / 4) {
    LogWarning("this process stood still for ", absl::FormatDuration(late),
               "; leases last longer by that");
    roster_->ExtendLeases(late);
  }
  last_look_ = now;
  if (stop_->raised()) leave_by_ = std::min(leave_by_, now + options_.leave_within);
  if (now >= leave_by_) servers_->CancelFileCalls();
  if (!servers_->Missing().empty()) roster_->ExcuseSteps();
  roster_->ExpireLeases();
}

}  // namespace keelson
