// Executes the blocks of a kernel.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_BLOCK_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_BLOCK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulated_kernel.h"
#include "testing/device/cuda_emulation/fiber.h"

namespace keelson::cuda_emulation {

// A barrier or an exchange that emulated threads wait at.
struct Arrival {
  const char* call = "";
  bool whole_block = false;
  unsigned mask = 0;  // of lanes, unless it is the whole block's
  uint64_t bits = 0;
  Exchange how = Exchange::kIndex;
  unsigned operand = 0;
  int width = 0;
  bool ballot = false;
};

// One for the process; used by one thread at a time. Fibers are kept from block to block: only
// threads that wait for others have one of their own.
class BlockExecutor {
 public:
  static BlockExecutor& Instance();

  // Executes all blocks, one after the other. The orders of the blocks and of the threads within a
  // block are chosen by `order`. Returns what is wrong with the kernel; "" when nothing is.
  std::string Run(dim3 grid, dim3 block, uint64_t order, const std::function<void()>& thread);

  // Called from an emulated thread: waits for the others, and returns the bits that it gets.
  uint64_t Arrive(const Arrival& arrival);

 private:
  enum class State { kNew, kReady, kWaiting, kEnded };
  struct Thread {
    State state = State::kNew;
    uint3 index = {};
    Fiber* fiber = nullptr;  // that it has begun on
    Arrival arrival;
    uint64_t result = 0;
  };

  std::string RunBlock();
  void ResetThreads();
  // The body of a fiber: runs threads that have not begun, one after the other.
  void RunNewThreads(Fiber* fiber);
  Fiber* IdleFiber();
  // The next thread that can continue; -1: none.
  int NextThread();
  void Begin(int number);
  // Lets the threads continue that waited for `number`, which has just arrived.
  void Complete(int number);
  void CompleteBlock(const char* call);
  void CompleteWarp(int warp, const Arrival& arrival);
  void Release(int number, uint64_t result);
  std::string Describe() const;

  const std::function<void()>* body_ = nullptr;
  uint64_t order_ = 0;
  std::vector<Thread> threads_;
  // Numbers of the threads that can continue.
  std::deque<int> ready_;
  // The number of lanes of each warp that wait for others of it.
  std::vector<int> waiting_;
  int current_ = -1;
  int arrived_ = 0;  // at the block's barrier
  int ended_ = 0;
  std::string failure_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_BLOCK_H_
