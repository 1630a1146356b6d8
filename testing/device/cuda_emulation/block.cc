#include "testing/device/cuda_emulation/block.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace keelson::cuda_emulation {
namespace {

constexpr int kLanes = 32;
// The value that a lane gets if no lane gave it one: a NaN in the lower half and in the whole.
constexpr uint64_t kNothing = ~uint64_t{0};

// The `i`-th of `n` in an order of choice: forwards, backwards, from the middle on.
uint64_t Permuted(uint64_t order, uint64_t i, uint64_t n) {
  switch (order % 3) {
    case 0:
      return i;
    case 1:
      return n - 1 - i;
    default:
      return (i + n / 2) % n;
  }
}

uint3 IndexWithin(dim3 extents, uint64_t number) {
  const uint64_t row = number / extents.x;
  return {static_cast<unsigned>(number % extents.x), static_cast<unsigned>(row % extents.y),
          static_cast<unsigned>(row / extents.y)};
}

// The lane that `lane` reads.
int Source(const Arrival& arrival, int lane) {
  const int first = lane / arrival.width * arrival.width;
  const int operand = static_cast<int>(arrival.operand);
  int source = lane;
  switch (arrival.how) {
    case Exchange::kIndex:
      return first + operand % arrival.width;
    case Exchange::kUp:
      source = lane - operand;
      return source < first ? lane : source;
    case Exchange::kDown:
      source = lane + operand;
      return source >= first + arrival.width ? lane : source;
    case Exchange::kXor:
      // Lanes of groups before the own one can be read.
      source = lane ^ operand;
      return source >= first + arrival.width ? lane : source;
  }
  return lane;
}

bool SameCall(const Arrival& a, const Arrival& b) {
  if (a.whole_block || b.whole_block || a.mask != b.mask) return false;
  return a.call == b.call || absl::string_view(a.call) == b.call;
}

}  // namespace

void AwaitBlock(const char* call) {
  Arrival arrival;
  arrival.call = call;
  arrival.whole_block = true;
  BlockExecutor::Instance().Arrive(arrival);
}

uint64_t ExchangeInWarp(const char* call, unsigned mask, uint64_t bits, Exchange how,
                        unsigned operand, int width) {
  Arrival arrival;
  arrival.call = call;
  arrival.mask = mask;
  arrival.bits = bits;
  arrival.how = how;
  arrival.operand = operand;
  arrival.width = width;
  return BlockExecutor::Instance().Arrive(arrival);
}

unsigned BallotOfWarp(const char* call, unsigned mask, bool predicate) {
  Arrival arrival;
  arrival.call = call;
  arrival.mask = mask;
  arrival.bits = predicate ? 1 : 0;
  arrival.ballot = true;
  return static_cast<unsigned>(BlockExecutor::Instance().Arrive(arrival));
}

BlockExecutor& BlockExecutor::Instance() {
  static BlockExecutor* const executor = new BlockExecutor;
  return *executor;
}

std::string BlockExecutor::Run(dim3 grid, dim3 block, uint64_t order,
                               const std::function<void()>& thread) {
  body_ = &thread;
  order_ = order;
  gridDim = grid;
  blockDim = block;
  threads_.resize(static_cast<size_t>(block.x) * block.y * block.z);
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  for (uint64_t i = 0; i < blocks; ++i) {
    blockIdx = IndexWithin(grid, Permuted(order / 3, i, blocks));
    std::string failure = RunBlock();
    if (!failure.empty()) return failure;
  }
  return "";
}

std::string BlockExecutor::RunBlock() {
  ResetThreads();
  for (int number = NextThread(); number >= 0 && failure_.empty(); number = NextThread()) {
    Thread& thread = threads_[number];
    if (thread.state == State::kNew) {
      Fiber* const fiber = IdleFiber();
      current_ = number;
      fiber->Resume();
    } else {
      Begin(number);
      thread.fiber->Resume();
    }
  }
  if (failure_.empty() && ended_ == static_cast<int>(threads_.size())) return "";
  std::string failure = failure_.empty() ? Describe() : failure_;
  // Abandons the threads that wait.
  idle_.clear();
  fibers_.clear();
  return failure;
}

void BlockExecutor::ResetThreads() {
  ready_.clear();
  waiting_.assign((threads_.size() + kLanes - 1) / kLanes, 0);
  arrived_ = ended_ = 0;
  failure_.clear();
  for (size_t i = 0; i < threads_.size(); ++i) {
    threads_[i] = Thread{};
    threads_[i].index = IndexWithin(blockDim, i);
    ready_.push_back(static_cast<int>(Permuted(order_, i, threads_.size())));
  }
}

Fiber* BlockExecutor::IdleFiber() {
  if (idle_.empty()) {
    // The fiber's own address is known only when it is there.
    auto self = std::make_shared<Fiber*>(nullptr);
    fibers_.push_back(std::make_unique<Fiber>([this, self] { RunNewThreads(*self); }));
    *self = fibers_.back().get();
    idle_.push_back(fibers_.back().get());
  }
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void BlockExecutor::RunNewThreads(Fiber* fiber) {
  while (true) {
    threads_[current_].fiber = fiber;
    Begin(current_);
    (*body_)();
    threads_[current_].state = State::kEnded;
    ++ended_;
    const bool next_is_new = !ready_.empty() && threads_[ready_.front()].state == State::kNew;
    if (next_is_new && failure_.empty()) {
      current_ = NextThread();
      continue;
    }
    idle_.push_back(fiber);
    fiber->Suspend();
  }
}

int BlockExecutor::NextThread() {
  if (ready_.empty()) return -1;
  const int number = ready_.front();
  ready_.pop_front();
  return number;
}

void BlockExecutor::Begin(int number) {
  current_ = number;
  threadIdx = threads_[number].index;
}

uint64_t BlockExecutor::Arrive(const Arrival& arrival) {
  const int number = current_;
  Thread& thread = threads_[number];
  if (!arrival.whole_block && (arrival.mask >> (number % kLanes) & 1) == 0) {
    failure_ = absl::StrCat(arrival.call, ": the mask does not name the lane that calls");
  }
  thread.arrival = arrival;
  thread.state = State::kWaiting;
  if (failure_.empty()) Complete(number);
  thread.fiber->Suspend();
  return thread.result;
}

void BlockExecutor::Complete(int number) {
  const Arrival& arrival = threads_[number].arrival;
  if (!arrival.whole_block) return CompleteWarp(number / kLanes, arrival);
  if (++arrived_ < static_cast<int>(threads_.size())) return;
  arrived_ = 0;
  for (size_t i = 0; i < threads_.size(); ++i) {
    Release(static_cast<int>(Permuted(order_, i, threads_.size())), 0);
  }
}

void BlockExecutor::CompleteWarp(int warp, const Arrival& arrival) {
  const int first = warp * kLanes;
  const int lanes = std::min(kLanes, static_cast<int>(threads_.size()) - first);
  const unsigned there = lanes == kLanes ? ~0u : (1u << lanes) - 1;
  if (++waiting_[warp] < std::popcount(arrival.mask & there)) return;
  uint64_t given[kLanes];
  unsigned ballot = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    given[lane] = kNothing;
    if ((arrival.mask >> lane & 1) == 0 || lane >= lanes) continue;
    const Thread& thread = threads_[first + lane];
    if (thread.state != State::kWaiting || !SameCall(thread.arrival, arrival)) return;
    given[lane] = thread.arrival.bits;
    if (thread.arrival.bits != 0) ballot |= 1u << lane;
  }
  for (int i = 0; i < lanes; ++i) {
    const int lane =
        static_cast<int>(Permuted(order_, static_cast<uint64_t>(i), static_cast<uint64_t>(lanes)));
    const Thread& thread = threads_[first + lane];
    if ((arrival.mask >> lane & 1) == 0) continue;
    --waiting_[warp];
    Release(first + lane, arrival.ballot ? ballot : given[Source(thread.arrival, lane)]);
  }
}

void BlockExecutor::Release(int number, uint64_t result) {
  Thread& thread = threads_[number];
  thread.result = result;
  thread.state = State::kReady;
  ready_.push_back(number);
}

std::string BlockExecutor::Describe() const {
  std::map<std::string, int> counts;
  for (const Thread& thread : threads_) {
    const bool waits = thread.state == State::kWaiting;
    ++counts[waits ? absl::StrCat("wait at ", thread.arrival.call) : std::string("have ended")];
  }
  std::string text = absl::StrCat("block (", blockIdx.x, ", ", blockIdx.y, ", ", blockIdx.z,
                                  ") cannot go on: of ", threads_.size(), " threads");
  const char* separator = " ";
  for (const auto& [what, count] : counts) {
    absl::StrAppend(&text, separator, count, " ", what);
    separator = ", ";
  }
  return text;
}

}  // namespace keelson::cuda_emulation
