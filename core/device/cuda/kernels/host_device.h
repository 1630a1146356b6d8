// Marks arithmetic that kernels use and CPU tests check, and floats as both see them.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_HOST_DEVICE_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_HOST_DEVICE_H_

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define KEELSON_HOST_DEVICE __host__ __device__
#else
#define KEELSON_HOST_DEVICE
#endif

namespace keelson::cuda {

KEELSON_HOST_DEVICE inline uint32_t BitsOf(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

KEELSON_HOST_DEVICE inline float FloatOf(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// Operations that are rounded one by one: nvcc would contract a product and a sum into a fused
// multiply-add, which gives other bits than the CPU's code.
#ifdef __CUDA_ARCH__
__device__ inline float RoundedSum(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float RoundedDifference(float a, float b) { return __fsub_rn(a, b); }
__device__ inline float RoundedProduct(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float RoundedQuotient(float a, float b) { return __fdiv_rn(a, b); }
#else
KEELSON_HOST_DEVICE inline float RoundedSum(float a, float b) { return a + b; }
KEELSON_HOST_DEVICE inline float RoundedDifference(float a, float b) { return a - b; }
KEELSON_HOST_DEVICE inline float RoundedProduct(float a, float b) { return a * b; }
KEELSON_HOST_DEVICE inline float RoundedQuotient(float a, float b) { return a / b; }
#endif

// Consecutive floats that are read and written at once.
template <int kSize>
struct alignas(kSize * sizeof(float)) Pack {
  float lane[kSize];
};

// `from` is aligned to the pack.
template <int kSize>
KEELSON_HOST_DEVICE inline Pack<kSize> LoadPack(const float* from) {
  return *reinterpret_cast<const Pack<kSize>*>(from);
}

template <int kSize>
KEELSON_HOST_DEVICE inline void StorePack(Pack<kSize> pack, float* to) {
  *reinterpret_cast<Pack<kSize>*>(to) = pack;
}

inline bool IsAligned(const void* address, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_HOST_DEVICE_H_
