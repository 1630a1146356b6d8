// A thread of execution that is switched to and from by hand.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_FIBER_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_FIBER_H_

#include <cstddef>
#include <functional>

#include "testing/device/cuda_emulation/stack_switch.h"

namespace keelson::cuda_emulation {

// Used by one thread at a time, not always the same one. Destroying a fiber that has not returned
// abandons it: nothing on its stack is destroyed.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Executes it until it calls Suspend or returns. Not from within a fiber.
  void Resume();
  // Returns to Resume. From within this fiber.
  void Suspend();

 private:
  void Start();

  const std::function<void()> body_;
  char* const stack_;
  Execution own_;
  Execution resumer_;
  // For the sanitizers: what they know of the two sides.
  void* own_fake_stack_ = nullptr;
  void* resumer_fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_stack_size_ = 0;
  void* own_thread_ = nullptr;
  void* resumer_thread_ = nullptr;
};

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_FIBER_H_
