#include "core/base/stop_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "core/base/log.h"

namespace keelson {
namespace {

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR2);  // wakes the watcher for its own end
  return set;
}

}  // namespace

StopCallback::StopCallback(const StopSignal* signal, std::function<void()> callback)
    : signal_(signal), callback_(std::move(callback)) {
  if (signal_ != nullptr) signal_->Add(this);
}

StopCallback::~StopCallback() {
  if (signal_ != nullptr) signal_->Remove(this);
}

void StopSignal::Add(StopCallback* callback) const {
  MutexLock lock(&mu_);
  callbacks_.push_back(callback);
  if (raised_) callback->callback_();
}

void StopSignal::Remove(StopCallback* callback) const {
  MutexLock lock(&mu_);
  callbacks_.erase(std::find(callbacks_.begin(), callbacks_.end(), callback));
}

void StopSignal::Raise() {
  MutexLock lock(&mu_);
  if (raised_.exchange(true)) return;
  cv_.NotifyAll();
  for (const StopCallback* callback : callbacks_) callback->callback_();
}

bool StopSignal::WaitFor(absl::Duration timeout) const {
  const Clock* const clock = Clock::Real();
  const absl::Duration deadline = clock->Monotonic() + timeout;
  MutexLock lock(&mu_);
  while (!raised_ && clock->Monotonic() < deadline) clock->WaitUntil(&mu_, &cv_, deadline);
  return raised_;
}

void StopSignal::Wait() const {
  MutexLock lock(&mu_);
  while (!raised_) cv_.Wait(&mu_);
}

SignalWatcher::SignalWatcher(StopSignal* stop) : stop_(stop) {
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this, set] {
    bool asked = false;
    while (true) {
      int signal = 0;
      if (sigwait(&set, &signal) != 0) continue;
      if (signal == SIGUSR2) return;
      if (asked) _exit(128 + signal);
      asked = true;
      LogInfo("received ", signal == SIGINT ? "SIGINT" : "SIGTERM", ", stopping");
      stop_->Raise();
    }
  });
}

SignalWatcher::~SignalWatcher() {
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

}  // namespace keelson
