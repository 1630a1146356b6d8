// The definitions for kernels that are compiled as C++: marks, indices, barriers, exchanges within
// a warp, atomics and intrinsics. Included by the emulation's cuda_runtime.h.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_EMULATED_KERNEL_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_EMULATED_KERNEL_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vector_types.h"

#define __global__
#define __device__
#define __host__
// Blocks are executed one after the other, so one instance serves all of them.
#define __shared__ static
#define __launch_bounds__(...)
#ifndef __restrict__
#define __restrict__ __restrict
#endif

// Indices of the emulated thread that is being executed.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
constexpr int warpSize = 32;

namespace keelson::cuda_emulation {

// Barriers of the emulated thread that is being executed; other threads are executed until it may
// go on.
void AwaitBlock(const char* call);
enum class Exchange { kIndex, kUp, kDown, kXor };
// The 8 bytes that the lane gives which `how` and `operand` name, within groups of `width` lanes.
uint64_t ExchangeInWarp(const char* call, unsigned mask, uint64_t bits, Exchange how,
                        unsigned operand, int width);
unsigned BallotOfWarp(const char* call, unsigned mask, bool predicate);

template <typename T>
T ExchangeValue(const char* call, unsigned mask, T value, Exchange how, unsigned operand,
                int width) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = ExchangeInWarp(call, mask, bits, how, operand, width);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace keelson::cuda_emulation

inline void __syncthreads() { keelson::cuda_emulation::AwaitBlock("__syncthreads"); }
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  keelson::cuda_emulation::BallotOfWarp("__syncwarp", mask, true);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return keelson::cuda_emulation::BallotOfWarp("__ballot_sync", mask, predicate != 0);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
  using keelson::cuda_emulation::Exchange;
  return keelson::cuda_emulation::ExchangeValue("__shfl_sync", mask, value, Exchange::kIndex,
                                                static_cast<unsigned>(lane), width);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  using keelson::cuda_emulation::Exchange;
  return keelson::cuda_emulation::ExchangeValue("__shfl_up_sync", mask, value, Exchange::kUp, delta,
                                                width);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  using keelson::cuda_emulation::Exchange;
  return keelson::cuda_emulation::ExchangeValue("__shfl_down_sync", mask, value, Exchange::kDown,
                                                delta, width);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize) {
  using keelson::cuda_emulation::Exchange;
  return keelson::cuda_emulation::ExchangeValue("__shfl_xor_sync", mask, value, Exchange::kXor,
                                                static_cast<unsigned>(lane_mask), width);
}

// Atomics: only one emulated thread is executed at a time.
template <typename T>
T atomicAdd(T* address, T value) {
  static_assert(std::is_integral_v<T>, "sums of floats in an order of chance do not repeat");
  const T old = *address;
  *address = old + value;
  return old;
}
template <typename T>
T atomicMax(T* address, T value) {
  const T old = *address;
  if (old < value) *address = value;
  return old;
}

// Arithmetic. The _rn forms are never contracted.
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned value) { return std::bit_cast<float>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline int __popc(unsigned value) { return std::popcount(value); }
using std::isfinite;
using std::isinf;
using std::isnan;

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_EMULATED_KERNEL_H_
