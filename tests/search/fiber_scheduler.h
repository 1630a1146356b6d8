// A deterministic scheduler: the threads that it runs are fibers of one thread of the operating
// system, one runs at a time, and a seeded generator chooses which. Time is virtual.
#ifndef KEELSON_TESTS_SEARCH_FIBER_SCHEDULER_H_
#define KEELSON_TESTS_SEARCH_FIBER_SCHEDULER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "core/base/scheduler.h"

namespace keelson {

// Where another thread may be chosen: before each lock, after each unlock and notification, at the
// start of a thread, and in Pause. The processor's time is virtual too: each choice takes some
// microseconds. Two runs with one seed and the same bodies make the same choices; trace() is a
// hash of them.
//
// A thread belongs to a group, as the thread that started it: a simulated process. A group that is
// killed never runs again, wherever its threads are; their stacks and what they own stay, so that a
// process that has simulated a kill ends with _exit.
//
// Everything is called by one thread of the operating system.
class FiberScheduler : public Scheduler {
 public:
  struct Options {
    uint64_t seed = 0;
    // The probability of another choice where one is possible and nothing demands it.
    double switching = 0.1;
    // What is called whenever another group's thread begins to run; null: nothing.
    std::function<void(int group)> on_switch = {};
  };
  enum class Outcome {
    kStopped,   // by Stop
    kFinished,  // nothing is left to run
    kDeadlock,  // every thread waits for something that no thread or timer will do
    kTimeLimit,
    kChoiceLimit,
  };

  explicit FiberScheduler(const Options& options);
  ~FiberScheduler() override;

  // Runs until a limit; called once, outside the threads that it runs. `choices` limits threads
  // that never wait.
  // Afterwards the calling thread is the operating system's again.
  Outcome Run(absl::Duration time_limit, int64_t choices);
  void Stop() { stopped_ = true; }

  // What follows is called by the threads that it runs and in timers; StartIn, At and Kill also
  // before Run.

  // Nobody joins this thread.
  void StartIn(int group, std::function<void()> body);
  // Calls `timer` after `delay`. It waits for nothing; it may start threads.
  void At(absl::Duration delay, std::function<void()> timer);
  // When the caller is one of the group, this does not return.
  void Kill(int group);
  // A paused group runs no thread until it is resumed; its time passes.
  void SetPaused(int group, bool paused);
  // From now on a thread that could go on does not run, with this probability at each choice, for
  // up to `longest`, as on a busy host.
  void SetStalls(double probability, absl::Duration longest) {
    stall_ = probability;
    longest_stall_ = longest;
  }
  // The group of the thread that runs; -1 in timers.
  int group() const;

  // Waits until Wake(key) or for `timeout`.
  void WaitFor(const void* key, absl::Duration timeout);
  void Wake(const void* key);
  // Another thread may run here.
  void Pause();

  // While one exists, no other thread is chosen, so that what only stands for the world outside
  // (a disk, a network) is never left half way by a kill. Nothing in it waits.
  class Atomic {
   public:
    explicit Atomic(FiberScheduler* scheduler) : scheduler_(scheduler) { ++scheduler_->atomic_; }
    ~Atomic() { --scheduler_->atomic_; }
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

   private:
    FiberScheduler* const scheduler_;
  };

  uint64_t trace() const { return trace_; }
  int64_t choices() const { return choices_; }
  // "group 3 waits for a lock", a line for each thread that is not at its end.
  std::string Threads() const;

  void Lock(const void* lock) override;
  void LockShared(const void* lock) override;
  void Unlock(const void* lock) override;
  void Wait(const void* condition, const void* lock, absl::Duration timeout) override;
  void NotifyAll(const void* condition) override { Wake(condition), MayPause(); }
  uint64_t Start(std::function<void()> body) override;
  void Join(uint64_t thread) override;
  absl::Time Now() const override { return absl::FromUnixSeconds(1'700'000'000) + Monotonic(); }
  absl::Duration Monotonic() const override { return absl::Nanoseconds(time_); }
  // Comes from the generator of the choices, so what threads draw depends on their order alone.
  uint64_t Random() override { return random_(); }
  // Whether something with this probability happens.
  bool Chance(double probability);
  // Uniform in [low, high].
  absl::Duration Between(absl::Duration low, absl::Duration high);

 private:
  struct Fiber;
  struct Stack;
  struct LockState {
    int readers = 0;
    bool exclusive = false;
    int waiting_writers = 0;
  };
  // Of a thread that waits, else a function.
  struct Timer {
    Fiber* fiber = nullptr;
    std::function<void()> body;
  };
  // By time, then by the order of their requests.
  using TimerKey = std::pair<int64_t, uint64_t>;

  Outcome Loop(absl::Duration time_limit, int64_t choices);
  Fiber* NewFiber(int group, std::function<void()> body);
  static void Begin(unsigned low, unsigned high);
  void MayPause();
  // Leaves the fiber that runs, for the loop to choose. Returns when it is chosen, or another fiber
  // begins on the stack of one that has finished.
  void Leave();
  // Runs the fiber of the stack until it leaves.
  void Enter(Stack* stack);
  void MakeRunnable(Fiber* fiber);
  void WaitForLock(const void* lock);
  // It no longer waits for its key, whose time is over.
  void TimeOut(Fiber* fiber);
  // The fiber that runs next, of those that can; null: none can.
  Fiber* Choose();
  void Resume(Fiber* fiber);
  void Finish();
  // Runs what is due; false: there is nothing left that time could bring.
  bool PassTime();
  bool AnyWaits() const;
  void Note(uint64_t fact) { trace_ = (trace_ ^ fact) * 0x100000001b3ull; }
  Stack* NewStack();
  // Where it begins.
  void Prepare(Stack* stack);

  const Options options_;
  std::mt19937_64 random_;
  jmp_buf loop_;
  std::map<uint64_t, std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> runnable_;
  Fiber* current_ = nullptr;
  int last_group_ = -1;
  uint64_t next_number_ = 1;
  std::vector<Stack*> free_stacks_;
  std::vector<std::unique_ptr<Stack>> stacks_;
  // Addresses differ from run to run, so nothing depends on these tables' order.
  absl::flat_hash_map<const void*, LockState> locks_;
  absl::flat_hash_map<const void*, absl::InlinedVector<Fiber*, 2>> waiting_;
  std::map<TimerKey, Timer> timers_;
  uint64_t next_timer_ = 0;
  std::vector<int> paused_;
  int64_t time_ = 0;  // nanoseconds
  bool stopped_ = false;
  double stall_ = 0;
  absl::Duration longest_stall_;
  int atomic_ = 0;
  uint64_t trace_ = 0xcbf29ce484222325ull;
  int64_t choices_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_FIBER_SCHEDULER_H_
