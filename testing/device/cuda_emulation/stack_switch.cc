#include "testing/device/cuda_emulation/stack_switch.h"

#include <cstdint>

#if defined(__x86_64__)

// Without the system calls of swapcontext. Pushed and popped is what a call keeps. Source: System V
// ABI, AMD64 supplement, 3.2.
asm(R"(
.text
.p2align 4
.type keelson_switch_stack, @function
keelson_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size keelson_switch_stack, .-keelson_switch_stack

.p2align 4
.type keelson_begin_stack, @function
keelson_begin_stack:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  call *%r13
  ud2
  .cfi_endproc
.size keelson_begin_stack, .-keelson_begin_stack
)");

extern "C" void keelson_switch_stack(void** save, void* load);
extern "C" void keelson_begin_stack();

namespace keelson::cuda_emulation {

void Prepare(char* stack, size_t bytes, void (*entry)(void*), void* argument,
             Execution* execution) {
  // In the order in which keelson_switch_stack pops them: r15, r14, r13, r12, rbx, rbp, and where
  // it returns to.
  constexpr size_t kPopped = 7;
  uintptr_t* const top = reinterpret_cast<uintptr_t*>(stack + bytes) - kPopped;
  for (size_t i = 0; i < kPopped; ++i) top[i] = 0;
  top[2] = reinterpret_cast<uintptr_t>(entry);
  top[3] = reinterpret_cast<uintptr_t>(argument);
  top[6] = reinterpret_cast<uintptr_t>(&keelson_begin_stack);
  execution->stack_pointer = top;
}

void Switch(Execution* from, const Execution& to) {
  keelson_switch_stack(&from->stack_pointer, to.stack_pointer);
}

}  // namespace keelson::cuda_emulation

#else

namespace keelson::cuda_emulation {
namespace {

using Entry = void (*)(void*);

// makecontext passes ints alone.
void Begin(unsigned entry_high, unsigned entry_low, unsigned argument_high, unsigned argument_low) {
  const auto entry = reinterpret_cast<Entry>(uintptr_t{entry_high} << 32 | entry_low);
  entry(reinterpret_cast<void*>(uintptr_t{argument_high} << 32 | argument_low));
}

unsigned High(uintptr_t value) { return static_cast<unsigned>(value >> 32); }
unsigned Low(uintptr_t value) { return static_cast<unsigned>(value); }

}  // namespace

void Prepare(char* stack, size_t bytes, void (*entry)(void*), void* argument,
             Execution* execution) {
  getcontext(&execution->context);
  execution->context.uc_stack.ss_sp = stack;
  execution->context.uc_stack.ss_size = bytes;
  execution->context.uc_link = nullptr;
  const auto first = reinterpret_cast<uintptr_t>(entry);
  const auto second = reinterpret_cast<uintptr_t>(argument);
  makecontext(&execution->context, reinterpret_cast<void (*)()>(&Begin), 4, High(first), Low(first),
              High(second), Low(second));
}

void Switch(Execution* from, const Execution& to) { swapcontext(&from->context, &to.context); }

}  // namespace keelson::cuda_emulation

#endif
