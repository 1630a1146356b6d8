// Leaves one stack for another.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_STACK_SWITCH_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_STACK_SWITCH_H_

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace keelson::cuda_emulation {

// The point at which execution on a stack continues.
struct Execution {
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
};

// Execution that will begin with entry(argument), which must not return, on a stack that is aligned
// to 16 bytes at both ends.
void Prepare(char* stack, size_t bytes, void (*entry)(void*), void* argument, Execution* execution);
// Continues at `to`; returns when something switches to `from`.
void Switch(Execution* from, const Execution& to);

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_STACK_SWITCH_H_
