#include "chief/servers/round_gate.h"

#include "core/base/clock.h"

namespace keelson {

void RoundGate::BeginRound() {
  MutexLock lock(&mu_);
  while (busy_ || cut_waits_) changed_.Wait(&mu_);
  busy_ = true;
}

bool RoundGate::BeginCut(absl::Duration patience) {
  const absl::Duration until = Clock::Real()->Monotonic() + patience;
  MutexLock lock(&mu_);
  cut_waits_ = true;
  while (busy_) {
    const absl::Duration rest = until - Clock::Real()->Monotonic();
    if (rest <= absl::ZeroDuration()) break;
    changed_.WaitFor(&mu_, rest);
  }
  cut_waits_ = false;
  changed_.NotifyAll();
  if (busy_) return false;
  busy_ = true;
  return true;
}

void RoundGate::End() {
  MutexLock lock(&mu_);
  busy_ = false;
  changed_.NotifyAll();
}

}  // namespace keelson
