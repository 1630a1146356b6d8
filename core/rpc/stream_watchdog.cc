#include "core/rpc/stream_watchdog.h"

#include <utility>

#include "core/base/thread_without_signals.h"

namespace keelson {

StreamWatchdog::StreamWatchdog(std::function<void()> cancel, const Clock* clock)
    : cancel_(std::move(cancel)), clock_(clock), thread_(ThreadWithoutSignals([this] { Run(); })) {}

StreamWatchdog::~StreamWatchdog() {
  {
    MutexLock lock(&mu_);
    ended_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

bool StreamWatchdog::Await(absl::FunctionRef<bool()> exchange) {
  {
    MutexLock lock(&mu_);
    until_ = clock_->Monotonic() + kLimit;
    changed_.NotifyAll();
  }
  const bool exchanged = exchange();
  MutexLock lock(&mu_);
  until_.reset();
  return exchanged;
}

bool StreamWatchdog::expired() const {
  MutexLock lock(&mu_);
  return expired_;
}

void StreamWatchdog::Run() {
  MutexLock lock(&mu_);
  while (!ended_) {
    if (!until_.has_value()) {
      changed_.Wait(&mu_);
    } else if (clock_->Monotonic() < *until_) {
      clock_->WaitUntil(&mu_, &changed_, *until_);
    } else {
      expired_ = true;
      until_.reset();
      cancel_();
    }
  }
}

}  // namespace keelson
