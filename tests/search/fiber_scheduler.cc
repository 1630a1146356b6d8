#include "tests/search/fiber_scheduler.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

constexpr size_t kStackBytes = 512 << 10;
constexpr size_t kGuardBytes = 4096;

// The virtual time that a choice takes at most.
constexpr int64_t kChoiceNanoseconds = 20'000;

// Longer waits are for ever: a virtual year is beyond every limit.
constexpr absl::Duration kLongestWait = absl::Hours(24 * 365);

int64_t Nanoseconds(absl::Duration duration) {
  return std::max<int64_t>(absl::ToInt64Nanoseconds(std::min(duration, kLongestWait)), 0);
}

}  // namespace

// Runs the bodies of fibers, one after the other.
struct FiberScheduler::Stack {
  char* memory = nullptr;
  ucontext_t context;  // where it begins
  jmp_buf left;        // where it goes on
  bool begun = false;
};

struct FiberScheduler::Fiber {
  uint64_t number = 0;
  int group = 0;
  std::function<void()> body;
  Stack* stack = nullptr;
  bool detached = false;  // nobody joins it
  bool finished = false;
  bool runnable = false;
  bool killed = false;
  // What it waits for; null: nothing.
  const void* key = nullptr;
  std::optional<TimerKey> timer;
  const char* wait = "";
};

FiberScheduler::FiberScheduler(const Options& options) : options_(options), random_(options.seed) {
  SetCurrent(this);
}

FiberScheduler::~FiberScheduler() {
  SetCurrent(nullptr);
  for (const auto& stack : stacks_) munmap(stack->memory, kStackBytes);
}

FiberScheduler::Stack* FiberScheduler::NewStack() {
  if (!free_stacks_.empty()) {
    Stack* const stack = free_stacks_.back();
    free_stacks_.pop_back();
    return stack;
  }
  void* const memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  mprotect(memory, kGuardBytes, PROT_NONE);
  Stack* const stack = stacks_.emplace_back(std::make_unique<Stack>()).get();
  stack->memory = static_cast<char*>(memory);
  Prepare(stack);
  return stack;
}

void FiberScheduler::Prepare(Stack* stack) {
  getcontext(&stack->context);
  stack->context.uc_stack.ss_sp = stack->memory;
  stack->context.uc_stack.ss_size = kStackBytes;
  stack->context.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(this);
  makecontext(&stack->context, reinterpret_cast<void (*)()>(&FiberScheduler::Begin), 2,
              static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
}

void FiberScheduler::Begin(unsigned low, unsigned high) {
  const auto address = (static_cast<uintptr_t>(high) << 32) | low;
  auto* const self = reinterpret_cast<FiberScheduler*>(address);
  while (true) {
    self->current_->body();
    self->Finish();
  }
}

FiberScheduler::Fiber* FiberScheduler::NewFiber(int group, std::function<void()> body) {
  auto owned = std::make_unique<Fiber>();
  Fiber* const fiber = owned.get();
  fiber->number = next_number_++;
  fiber->group = group;
  fiber->body = std::move(body);
  fiber->stack = NewStack();
  fibers_[fiber->number] = std::move(owned);
  MakeRunnable(fiber);
  return fiber;
}

void FiberScheduler::StartIn(int group, std::function<void()> body) {
  NewFiber(group, std::move(body))->detached = true;
}

uint64_t FiberScheduler::Start(std::function<void()> body) {
  const uint64_t number = NewFiber(group(), std::move(body))->number;
  MayPause();
  return number;
}

void FiberScheduler::Join(uint64_t thread) {
  const auto found = fibers_.find(thread);
  if (found == fibers_.end()) return;
  Fiber* const fiber = found->second.get();
  while (!fiber->finished) {
    current_->wait = "for the end of a thread";
    WaitFor(fiber, absl::InfiniteDuration());
  }
  fibers_.erase(thread);
}

void FiberScheduler::Finish() {
  current_->finished = true;
  current_->body = nullptr;
  Wake(current_);
  Leave();
}

int FiberScheduler::group() const { return current_ == nullptr ? -1 : current_->group; }

void FiberScheduler::MakeRunnable(Fiber* fiber) {
  fiber->key = nullptr;
  if (fiber->timer.has_value()) timers_.erase(*fiber->timer);
  fiber->timer.reset();
  if (fiber->runnable || fiber->killed) return;
  fiber->runnable = true;
  runnable_.push_back(fiber);
}

void FiberScheduler::WaitFor(const void* key, absl::Duration timeout) {
  if (current_ == nullptr || atomic_ > 0) std::abort();
  Fiber* const fiber = current_;
  fiber->key = key;
  waiting_[key].push_back(fiber);
  if (timeout < kLongestWait) {
    fiber->timer = {time_ + Nanoseconds(timeout), next_timer_++};
    timers_[*fiber->timer].fiber = fiber;
  }
  Leave();
  fiber->wait = "";
}

void FiberScheduler::TimeOut(Fiber* fiber) {
  fiber->timer.reset();
  const auto waiting = waiting_.find(fiber->key);
  waiting->second.erase(std::find(waiting->second.begin(), waiting->second.end(), fiber));
  if (waiting->second.empty()) waiting_.erase(waiting);
  MakeRunnable(fiber);
}

void FiberScheduler::Wake(const void* key) {
  const auto waiting = waiting_.find(key);
  if (waiting == waiting_.end()) return;
  const absl::InlinedVector<Fiber*, 2> woken = std::move(waiting->second);
  waiting_.erase(waiting);
  for (Fiber* const fiber : woken) MakeRunnable(fiber);
}

void FiberScheduler::At(absl::Duration delay, std::function<void()> timer) {
  timers_[{time_ + Nanoseconds(delay), next_timer_++}].body = std::move(timer);
}

void FiberScheduler::Kill(int group) {
  for (auto& [number, fiber] : fibers_) {
    if (fiber->group != group) continue;
    fiber->killed = true;
    if (fiber->timer.has_value()) timers_.erase(*fiber->timer);
    fiber->timer.reset();
  }
  std::erase_if(runnable_, [](const Fiber* fiber) { return fiber->killed; });
  for (auto& [key, fibers] : waiting_) {
    const auto end = std::remove_if(fibers.begin(), fibers.end(),
                                    [](const Fiber* fiber) { return fiber->killed; });
    fibers.erase(end, fibers.end());
  }
  if (current_ != nullptr && current_->killed) Leave();
}

void FiberScheduler::SetPaused(int group, bool paused) {
  std::erase(paused_, group);
  if (paused) paused_.push_back(group);
}

void FiberScheduler::MayPause() {
  if (current_ == nullptr || atomic_ > 0) return;
  if (!Chance(options_.switching)) return;
  if (Chance(stall_)) return WaitFor(&stall_, Between(absl::ZeroDuration(), longest_stall_));
  Pause();
}

void FiberScheduler::Pause() {
  if (current_ == nullptr || atomic_ > 0) return;
  MakeRunnable(current_);
  Leave();
}

// Unlike swapcontext these make no system call.
void FiberScheduler::Leave() {
  if (_setjmp(current_->stack->left) == 0) _longjmp(loop_, 1);
}

void FiberScheduler::Enter(Stack* stack) {
  if (_setjmp(loop_) != 0) return;
  if (std::exchange(stack->begun, true)) _longjmp(stack->left, 1);
  setcontext(&stack->context);
}

void FiberScheduler::WaitForLock(const void* lock) {
  if (current_ == nullptr || atomic_ > 0) std::abort();  // nobody could release it
  current_->wait = "for a lock";
  WaitFor(lock, absl::InfiniteDuration());
}

void FiberScheduler::Lock(const void* lock) {
  MayPause();
  while (true) {
    LockState& state = locks_[lock];
    if (!state.exclusive && state.readers == 0) {
      state.exclusive = true;
      return;
    }
    ++state.waiting_writers;
    WaitForLock(lock);
    --locks_[lock].waiting_writers;
  }
}

void FiberScheduler::LockShared(const void* lock) {
  MayPause();
  while (true) {
    LockState& state = locks_[lock];
    if (!state.exclusive && state.waiting_writers == 0) {
      ++state.readers;
      return;
    }
    WaitForLock(lock);
  }
}

void FiberScheduler::Unlock(const void* lock) {
  const auto found = locks_.find(lock);
  if (found == locks_.end()) std::abort();
  LockState& state = found->second;
  if (state.exclusive) {
    state.exclusive = false;
  } else if (--state.readers < 0) {
    std::abort();
  }
  const bool is_free = !state.exclusive && state.readers == 0;
  if (is_free && state.waiting_writers == 0) locks_.erase(found);
  if (is_free) Wake(lock);
  MayPause();
}

void FiberScheduler::Wait(const void* condition, const void* lock, absl::Duration timeout) {
  {
    // From here on a notification counts.
    const Atomic atomic(this);
    Unlock(lock);
  }
  current_->wait = "for a condition";
  WaitFor(condition, timeout);
  Lock(lock);
}

FiberScheduler::Fiber* FiberScheduler::Choose() {
  if (paused_.empty()) {
    if (runnable_.empty()) return nullptr;
    const size_t i = random_() % runnable_.size();
    std::swap(runnable_[i], runnable_.back());
    Fiber* const fiber = runnable_.back();
    runnable_.pop_back();
    return fiber;
  }
  std::vector<size_t> candidates;
  for (size_t i = 0; i < runnable_.size(); ++i) {
    if (std::count(paused_.begin(), paused_.end(), runnable_[i]->group) == 0) {
      candidates.push_back(i);
    }
  }
  if (candidates.empty()) return nullptr;
  const size_t i = candidates[random_() % candidates.size()];
  std::swap(runnable_[i], runnable_.back());
  Fiber* const fiber = runnable_.back();
  runnable_.pop_back();
  return fiber;
}

void FiberScheduler::Resume(Fiber* fiber) {
  Note(fiber->number);
  Note(static_cast<uint64_t>(time_));
  fiber->runnable = false;
  current_ = fiber;
  if (fiber->group != last_group_ && options_.on_switch) options_.on_switch(fiber->group);
  last_group_ = fiber->group;
  Enter(fiber->stack);
  current_ = nullptr;
  if (!fiber->finished) return;
  free_stacks_.push_back(std::exchange(fiber->stack, nullptr));
  if (fiber->detached) fibers_.erase(fiber->number);
}

bool FiberScheduler::PassTime() {
  if (timers_.empty()) return false;
  time_ = std::max(time_, timers_.begin()->first.first);
  return true;
}

bool FiberScheduler::AnyWaits() const {
  return std::any_of(fibers_.begin(), fibers_.end(), [](const auto& entry) {
    return !entry.second->finished && !entry.second->killed;
  });
}

FiberScheduler::Outcome FiberScheduler::Run(absl::Duration time_limit, int64_t choices) {
  const Outcome outcome = Loop(time_limit, choices);
  SetCurrent(nullptr);
  return outcome;
}

FiberScheduler::Outcome FiberScheduler::Loop(absl::Duration time_limit, int64_t choices) {
  while (!stopped_) {
    while (!timers_.empty() && timers_.begin()->first.first <= time_ && !stopped_) {
      const auto timer = timers_.extract(timers_.begin());
      if (timer.mapped().fiber != nullptr) {
        TimeOut(timer.mapped().fiber);
      } else {
        timer.mapped().body();
      }
    }
    if (stopped_) break;
    if (time_ >= Nanoseconds(time_limit)) return Outcome::kTimeLimit;
    if (Fiber* const fiber = Choose()) {
      if (++choices_ > choices) return Outcome::kChoiceLimit;
      time_ += 1 + static_cast<int64_t>(random_() % kChoiceNanoseconds);
      Resume(fiber);
    } else if (!PassTime()) {
      return AnyWaits() ? Outcome::kDeadlock : Outcome::kFinished;
    }
  }
  return Outcome::kStopped;
}

std::string FiberScheduler::Threads() const {
  std::string text;
  for (const auto& [number, fiber] : fibers_) {
    if (fiber->finished || fiber->killed) continue;
    absl::StrAppend(&text, "thread ", number, " of group ", fiber->group,
                    fiber->key == nullptr ? " runs" : " waits ", fiber->wait, "\n");
  }
  return text;
}

bool FiberScheduler::Chance(double probability) {
  if (probability <= 0) return false;
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

absl::Duration FiberScheduler::Between(absl::Duration low, absl::Duration high) {
  const auto range = static_cast<uint64_t>(absl::ToInt64Nanoseconds(high - low)) + 1;
  return low + absl::Nanoseconds(static_cast<int64_t>(random_() % range));
}

}  // namespace keelson
