// A flag that is raised once and that threads can wait on: "please stop".
#ifndef KEELSON_CORE_BASE_STOP_SIGNAL_H_
#define KEELSON_CORE_BASE_STOP_SIGNAL_H_

#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace keelson {

// Thread-safe.
class StopSignal {
 public:
  StopSignal() = default;
  // A signal that is raised with `parent`, or on its own earlier. `parent` must outlive it.
  explicit StopSignal(StopSignal* parent);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void Raise();
  bool raised() const;
  // Waits until raised or until `timeout` has passed; returns raised(). This is also how a
  // loop pauses: it wakes at once when it is asked to stop.
  bool WaitFor(absl::Duration timeout) const;
  void Wait() const;

 private:
  void AddChild(StopSignal* child);
  void RemoveChild(StopSignal* child);

  StopSignal* const parent_ = nullptr;

  // A parent's lock is taken before its children's.
  mutable Mutex mu_;
  mutable CondVar cv_;
  std::vector<StopSignal*> children_ ABSL_GUARDED_BY(mu_);
  bool raised_ ABSL_GUARDED_BY(mu_) = false;
};

// Raises a StopSignal on the first SIGTERM or SIGINT; a second one ends the process at once with
// 128 + signal. Create one, in main, before any other thread: it blocks the signals for all
// threads started later and waits for them in a thread of its own.
class SignalWatcher {
 public:
  explicit SignalWatcher(StopSignal* stop);
  ~SignalWatcher();

 private:
  StopSignal* const stop_;
  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_STOP_SIGNAL_H_
