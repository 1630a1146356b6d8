// A flag that is raised once and that threads can wait on: "please stop".
#ifndef KEELSON_CORE_BASE_STOP_SIGNAL_H_
#define KEELSON_CORE_BASE_STOP_SIGNAL_H_

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace keelson {

class StopSignal;

// Has a function called when a signal is raised, for threads that wait for something else, too.
class StopCallback {
 public:
  // `signal` (null: one that is never raised) outlives this. `callback` is called once, by the
  // thread that raises the signal, or here if it is raised. It may take locks, which no thread
  // holds while it creates or destroys a callback of this signal, and asks nothing of the signal
  // but raised().
  StopCallback(const StopSignal* signal, std::function<void()> callback);
  // Waits for a call that is under way.
  ~StopCallback();
  StopCallback(const StopCallback&) = delete;
  StopCallback& operator=(const StopCallback&) = delete;

 private:
  friend class StopSignal;
  const StopSignal* const signal_;
  const std::function<void()> callback_;
};

// Thread-safe.
class StopSignal {
 public:
  StopSignal() : StopSignal(nullptr) {}
  // A signal that is raised with `parent`, or on its own earlier. `parent` must outlive it.
  explicit StopSignal(const StopSignal* parent) : parent_(parent, [this] { Raise(); }) {}
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void Raise();
  bool raised() const { return raised_; }
  // Waits until raised or until `timeout` has passed; returns raised(). This is also how a
  // loop pauses: it wakes at once when it is asked to stop.
  bool WaitFor(absl::Duration timeout) const;
  void Wait() const;

 private:
  friend class StopCallback;

  void Add(StopCallback* callback) const;
  void Remove(StopCallback* callback) const;

  // A parent's lock is taken before its children's.
  mutable Mutex mu_;
  mutable CondVar cv_;
  mutable std::vector<StopCallback*> callbacks_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> raised_ = false;  // written with the lock
  // The last member: it may raise this signal at once.
  const StopCallback parent_;
};

// Raises a StopSignal on the first SIGTERM or SIGINT; a second one ends the process at once with
// 128 + signal. Create one, in main, before any other thread: it blocks the signals for all
// threads started later and waits for them in a thread of its own.
class SignalWatcher {
 public:
  // For a process whose threads may hang in calls of the system that nothing interrupts.
  struct Limit {
    // When the watcher still exists this long after the first signal, it ends the process, with
    // kExitStopped and without calling destructors.
    absl::Duration after_signal = absl::InfiniteDuration();
    // Called before, on a thread of its own, and left behind after a second if it hangs, too. May
    // be null.
    std::function<void()> last_word;
  };

  explicit SignalWatcher(StopSignal* stop) : SignalWatcher(stop, Limit()) {}
  SignalWatcher(StopSignal* stop, Limit limit);
  ~SignalWatcher();

 private:
  void Watch();
  [[noreturn]] void EndProcess() const;

  StopSignal* const stop_;
  const Limit limit_;
  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_STOP_SIGNAL_H_
