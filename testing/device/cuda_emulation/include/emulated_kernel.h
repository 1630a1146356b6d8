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
#define __forceinline__ inline
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
inline int __any_sync(unsigned mask, int predicate) {
  return keelson::cuda_emulation::BallotOfWarp("__any_sync", mask, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return keelson::cuda_emulation::BallotOfWarp("__all_sync", mask, predicate == 0) == 0;
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
inline void __threadfence() {}
inline void __threadfence_block() {}

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
template <typename T>
T atomicMin(T* address, T value) {
  const T old = *address;
  if (value < old) *address = value;
  return old;
}
template <typename T>
T atomicOr(T* address, T value) {
  const T old = *address;
  *address = old | value;
  return old;
}

// Arithmetic. The _rn forms are never contracted.
template <typename T>
T __ldg(const T* address) {
  return *address;
}
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned value) { return std::bit_cast<float>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __int_as_float(int value) { return std::bit_cast<float>(value); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
inline float rsqrtf(float a) { return 1.0f / std::sqrt(a); }
inline int __float2int_rn(float a) { return static_cast<int>(std::rintf(a)); }
inline int __popc(unsigned value) { return std::popcount(value); }
inline int __popcll(unsigned long long value) { return std::popcount(value); }
inline int __ffs(int value) {
  return value == 0 ? 0 : std::countr_zero(static_cast<unsigned>(value)) + 1;
}
inline int __clz(int value) { return std::countl_zero(static_cast<unsigned>(value)); }
inline int __clzll(long long value) {
  return std::countl_zero(static_cast<unsigned long long>(value));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
using std::isfinite;
using std::isinf;
using std::isnan;

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_EMULATED_KERNEL_H_
