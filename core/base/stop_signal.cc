#include "core/base/stop_signal.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"

namespace keelson {
namespace {

constexpr absl::Duration kLongestWait = absl::Hours(1);
constexpr absl::Duration kLastWordPatience = absl::Seconds(1);

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR2);  // wakes the watcher for its own end
  return set;
}

// The signal that came before `end`, on the monotonic clock; 0: perhaps none.
int AwaitSignal(absl::Duration end) {
  const sigset_t set = WatchedSignals();
  const absl::Duration rest =
      std::clamp(end - Clock::Real()->Monotonic(), absl::ZeroDuration(), kLongestWait);
  const timespec timeout = absl::ToTimespec(rest);
  return std::max(sigtimedwait(&set, nullptr, &timeout), 0);
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

SignalWatcher::SignalWatcher(StopSignal* stop, Limit limit)
    : stop_(stop), limit_(std::move(limit)) {
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { Watch(); });
}

SignalWatcher::~SignalWatcher() {
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

void SignalWatcher::Watch() {
  absl::Duration end = absl::InfiniteDuration();
  // A callback of the signal may hang, too.
  std::thread raiser;
  bool asked = false;
  while (true) {
    const int signal = AwaitSignal(end);
    if (signal == SIGUSR2) break;
    const bool late = signal == 0 && Clock::Real()->Monotonic() >= end;
    if (signal == 0 && !late) continue;
    // It is left behind, whether it hangs or not.
    if (raiser.joinable()) raiser.detach();
    if (late) EndProcess();
    if (std::exchange(asked, true)) _exit(128 + signal);
    LogInfo("received ", signal == SIGINT ? "SIGINT" : "SIGTERM", ", stopping");
    end = Clock::Real()->Monotonic() + limit_.after_signal;
    raiser = std::thread([this] { stop_->Raise(); });
  }
  if (raiser.joinable()) raiser.join();
}

void SignalWatcher::EndProcess() const {
  StopSignal said;
  if (limit_.last_word != nullptr) {
    std::thread([this, &said] {
      limit_.last_word();
      said.Raise();
    }).detach();
    said.WaitFor(kLastWordPatience);
  }
  _exit(kExitStopped);
}

}  // namespace keelson
