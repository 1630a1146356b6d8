#include "testing/device/cuda_emulation/fiber.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace keelson::cuda_emulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = size_t{256} << 10;
#else
constexpr size_t kStackBytes = size_t{64} << 10;
#endif
constexpr size_t kGuardPage = 4096;

// With a page below that catches what overflows.
char* NewStack() {
  void* const stack = mmap(nullptr, kGuardPage + kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED || mprotect(stack, kGuardPage, PROT_NONE) != 0) {
    perror("a fiber's stack");
    abort();
  }
  return static_cast<char*>(stack) + kGuardPage;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(NewStack()) {
  Prepare(
      stack_, kStackBytes, [](void* fiber) { static_cast<Fiber*>(fiber)->Start(); }, this, &own_);
#if defined(__SANITIZE_THREAD__)
  own_thread_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(own_thread_);
#endif
  munmap(stack_ - kGuardPage, kGuardPage + kStackBytes);
}

void Fiber::Start() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &resumer_stack_, &resumer_stack_size_);
#endif
  body_();
  // Never resumed again.
  Suspend();
}

void Fiber::Resume() {
#if defined(__SANITIZE_THREAD__)
  resumer_thread_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_thread_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&resumer_fake_stack_, stack_, kStackBytes);
#endif
  Switch(&resumer_, own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(resumer_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::Suspend() {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(resumer_thread_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&own_fake_stack_, resumer_stack_, resumer_stack_size_);
#endif
  Switch(&own_, resumer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_fake_stack_, &resumer_stack_, &resumer_stack_size_);
#endif
}

}  // namespace keelson::cuda_emulation
