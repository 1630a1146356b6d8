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
constexpr absl::Duration kChoiceTime = absl::Microseconds(20);

// Longer waits are for ever: a virtual year is beyond every limit.
constexpr absl::Duration kLongestWait = absl::Hours(24 * 365);

}  // namespace

struct FiberScheduler::Fiber {
  uint64_t number = 0;
  int group = 0;
  std::function<void()> body;
  ucontext_t context;
  char* stack = nullptr;
  bool detached = false;  // nobody joins it
  bool finished = false;
  bool runnable = false;
  bool killed = false;
  // What it waits for; null: nothing.
  const void* key = nullptr;
  std::optional<std::pair<absl::Duration, uint64_t>> timer;
  const char* wait = "";
};

FiberScheduler::FiberScheduler(const Options& options) : options_(options), random_(options.seed) {
  SetCurrent(this);
}

FiberScheduler::~FiberScheduler() {
  SetCurrent(nullptr);
  for (char* const stack : stacks_) munmap(stack, kStackBytes);
}

char* FiberScheduler::NewStack() {
  if (!free_stacks_.empty()) {
    char* const stack = free_stacks_.back();
    free_stacks_.pop_back();
    return stack;
  }
  void* const memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  mprotect(memory, kGuardBytes, PROT_NONE);
  stacks_.push_back(static_cast<char*>(memory));
  return stacks_.back();
}

void FiberScheduler::Enter(unsigned low, unsigned high) {
  const auto address = (static_cast<uintptr_t>(high) << 32) | low;
  auto* const self = reinterpret_cast<FiberScheduler*>(address);
  self->current_->body();
  self->Finish();
}

FiberScheduler::Fiber* FiberScheduler::NewFiber(int group, std::function<void()> body) {
  auto owned = std::make_unique<Fiber>();
  Fiber* const fiber = owned.get();
  fiber->number = next_number_++;
  fiber->group = group;
  fiber->body = std::move(body);
  fiber->stack = NewStack();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(this);
  makecontext(&fiber->context, reinterpret_cast<void (*)()>(&FiberScheduler::Enter), 2,
              static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
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
  std::abort();
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
  waiting_.emplace(key, fiber);
  if (timeout < kLongestWait) {
    fiber->timer = {time_ + std::max(timeout, absl::ZeroDuration()), next_timer_++};
    timers_[*fiber->timer] = [this, fiber, key] {
      fiber->timer.reset();
      const auto [begin, end] = waiting_.equal_range(key);
      for (auto it = begin; it != end; ++it) {
        if (it->second != fiber) continue;
        waiting_.erase(it);
        break;
      }
      MakeRunnable(fiber);
    };
  }
  Leave();
  fiber->wait = "";
}

void FiberScheduler::Wake(const void* key) {
  const auto [begin, end] = waiting_.equal_range(key);
  std::vector<Fiber*> woken;
  for (auto it = begin; it != end; ++it) woken.push_back(it->second);
  waiting_.erase(begin, end);
  for (Fiber* const fiber : woken) MakeRunnable(fiber);
}

void FiberScheduler::At(absl::Duration delay, std::function<void()> timer) {
  timers_[{time_ + delay, next_timer_++}] = std::move(timer);
}

void FiberScheduler::Kill(int group) {
  for (auto& [number, fiber] : fibers_) {
    if (fiber->group != group) continue;
    fiber->killed = true;
    if (fiber->timer.has_value()) timers_.erase(*fiber->timer);
    fiber->timer.reset();
  }
  std::erase_if(runnable_, [](const Fiber* fiber) { return fiber->killed; });
  std::erase_if(waiting_, [](const auto& entry) { return entry.second->killed; });
  if (current_ != nullptr && current_->killed) Leave();
}

void FiberScheduler::SetPaused(int group, bool paused) {
  std::erase(paused_, group);
  if (paused) paused_.push_back(group);
}

void FiberScheduler::MayPause() {
  if (current_ == nullptr || atomic_ > 0) return;
  if (Chance(options_.switching)) Pause();
}

void FiberScheduler::Pause() {
  if (current_ == nullptr || atomic_ > 0) return;
  MakeRunnable(current_);
  Leave();
}

void FiberScheduler::Leave() { swapcontext(&current_->context, &loop_); }

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
  Note(static_cast<uint64_t>(absl::ToInt64Nanoseconds(time_)));
  fiber->runnable = false;
  current_ = fiber;
  if (fiber->group != last_group_ && options_.on_switch) options_.on_switch(fiber->group);
  last_group_ = fiber->group;
  swapcontext(&loop_, &fiber->context);
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
  while (!stopped_) {
    while (!timers_.empty() && timers_.begin()->first.first <= time_ && !stopped_) {
      auto timer = timers_.extract(timers_.begin());
      timer.mapped()();
    }
    if (stopped_) break;
    if (time_ >= time_limit) return Outcome::kTimeLimit;
    if (Fiber* const fiber = Choose()) {
      if (++choices_ > choices) return Outcome::kChoiceLimit;
      time_ += absl::Nanoseconds(
          1 + random_() % static_cast<uint64_t>(absl::ToInt64Nanoseconds(kChoiceTime)));
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
