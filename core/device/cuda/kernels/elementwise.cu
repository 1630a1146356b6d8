#include <initializer_list>

#include "core/device/cuda/kernels/element_math.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/launch.h"
#include "core/device/cuda/kernels/wire_math.h"

namespace keelson::cuda {
namespace {

// Packs that a thread reads before it uses the first of them.
constexpr int kUnroll = 4;

// The division of n elements: `head` single ones, then packs of four, then single ones.
struct Split {
  int64_t head;
  int64_t packs;
};

// All elements are single ones if the operands' distances from a multiple of 16 bytes differ.
Split SplitOf(int64_t n, std::initializer_list<const float*> operands) {
  const auto first = reinterpret_cast<uintptr_t>(*operands.begin()) % sizeof(Pack<4>);
  for (const float* operand : operands) {
    if (reinterpret_cast<uintptr_t>(operand) % sizeof(Pack<4>) != first) return {n, 0};
  }
  const int64_t to_aligned = first == 0 ? 0 : static_cast<int64_t>(4 - first / sizeof(float));
  const int64_t head = to_aligned < n ? to_aligned : n;
  return {head, (n - head) / 4};
}

// Operations on one element, of the old y[i] and of operands a[i] and b[i]. kOperands is 1 when b
// is not used, 0 when a is neither.

struct FillOperation {
  static constexpr int kOperands = 0;
  float value;
  __device__ float operator()(float, float) const { return value; }
};

struct ScaleOperation {
  static constexpr int kOperands = 1;
  float alpha;
  __device__ float operator()(float x, float) const { return x * alpha; }
};

struct AxpyOperation {
  static constexpr int kOperands = 2;
  float alpha;
  __device__ float operator()(float x, float y) const { return y + alpha * x; }
};

struct CopyOperation {
  static constexpr int kOperands = 1;
  __device__ float operator()(float x, float) const { return x; }
};

struct AddOperation {
  static constexpr int kOperands = 2;
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct MultiplyOperation {
  static constexpr int kOperands = 2;
  __device__ float operator()(float a, float b) const { return a * b; }
};

struct InverseSquareRootOperation {
  static constexpr int kOperands = 1;
  float epsilon;
  __device__ float operator()(float x, float) const { return 1.0f / sqrtf(x + epsilon); }
};

template <ActivationKind kKind>
struct ActivateOperation {
  static constexpr int kOperands = 1;
  __device__ float operator()(float x, float) const { return Activated(kKind, x); }
};

template <ActivationKind kKind>
struct ActivateBackwardOperation {
  static constexpr int kOperands = 2;
  __device__ float operator()(float y, float dy) const { return ActivationGradient(kKind, y, dy); }
};

template <GateKind kKind>
struct GateOperation {
  static constexpr int kOperands = 1;
  __device__ float operator()(float x, float) const { return Gated(kKind, x); }
};

template <GateKind kKind>
struct GateBackwardOperation {
  static constexpr int kOperands = 2;
  __device__ float operator()(float x, float dy) const { return GateGradientOf(kKind, x, dy); }
};

template <int kPacks, typename Operation>
__device__ void MapPacks(const Operation& operation, int64_t first, int64_t stride, const float* a,
                         const float* b, float* out) {
  Pack<4> x[kPacks] = {}, y[kPacks] = {};
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (Operation::kOperands > 0) x[k] = LoadPack<4>(a + 4 * (first + k * stride));
    if (Operation::kOperands > 1) y[k] = LoadPack<4>(b + 4 * (first + k * stride));
  }
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
#pragma unroll
    for (int lane = 0; lane < 4; ++lane) {
      x[k].lane[lane] = operation(x[k].lane[lane], y[k].lane[lane]);
    }
    StorePack(x[k], out + 4 * (first + k * stride));
  }
}

template <typename Operation>
__device__ void MapElements(const Operation& operation, int64_t begin, int64_t end, const float* a,
                            const float* b, float* out) {
  for (int64_t i = begin + ThreadIndex(); i < end; i += ThreadCount()) {
    out[i] =
        operation(Operation::kOperands > 0 ? a[i] : 0.0f, Operation::kOperands > 1 ? b[i] : 0.0f);
  }
}

// `out` may be an operand, so nothing is __restrict__.
template <typename Operation>
__global__ void __launch_bounds__(kThreads) MapKernel(Operation operation, Split split, int64_t n,
                                                      const float* a, const float* b, float* out) {
  MapElements(operation, 0, split.head, a, b, out);
  const int64_t count = ThreadCount(), offset = split.head;
  int64_t i = ThreadIndex();
  for (; i + (kUnroll - 1) * count < split.packs; i += kUnroll * count) {
    MapPacks<kUnroll>(operation, i, count, a + offset, b + offset, out + offset);
  }
  for (; i < split.packs; i += count) {
    MapPacks<1>(operation, i, count, a + offset, b + offset, out + offset);
  }
  MapElements(operation, offset + 4 * split.packs, n, a, b, out);
}

template <typename Operation>
cudaError_t LaunchMap(cudaStream_t stream, const Operation& operation, int64_t n, const float* a,
                      const float* b, float* out) {
  if (n == 0) return cudaSuccess;
  // Unrolling needs fewer blocks; it is used where they still fill a large GPU.
  constexpr int64_t kPerBlock = kThreads * kUnroll, kManyBlocks = 512;
  const Split split = SplitOf(n, {a, b, out});
  const int64_t alone = split.packs > 0 ? split.packs : n;
  const unsigned blocks =
      split.packs >= kManyBlocks * kPerBlock ? BlocksFor(split.packs, kPerBlock) : BlocksFor(alone);
  return Launch(MapKernel<Operation>, blocks, stream, operation, split, n, a, b, out);
}

__global__ void __launch_bounds__(kThreads)
    DropoutKernel(float rate, const uint64_t* seed, uint64_t philox_stream, bool aligned, int64_t n,
                  const float* x, float* y) {
  const int64_t groups = (n + 3) / 4;
  const uint64_t key = *seed;
  for (int64_t group = ThreadIndex(); group < groups; group += ThreadCount()) {
    const int64_t first = 4 * group;
    if (aligned && first + 4 <= n) {
      StorePack(DroppedOut(rate, key, philox_stream, group, LoadPack<4>(x + first)), y + first);
      continue;
    }
    Pack<4> pack = {};
    for (int j = 0; j < 4; ++j) {
      if (first + j < n) pack.lane[j] = x[first + j];
    }
    pack = DroppedOut(rate, key, philox_stream, group, pack);
    for (int j = 0; j < 4; ++j) {
      if (first + j < n) y[first + j] = pack.lane[j];
    }
  }
}

__device__ uint32_t TwoBfloat16(float low, float high) {
  return ToBfloat16(low) | static_cast<uint32_t>(ToBfloat16(high)) << 16;
}

// Eight elements at a time where `aligned`.
__global__ void __launch_bounds__(kThreads)
    ToBfloat16Kernel(bool aligned, int64_t n, const float* __restrict__ x,
                     uint16_t* __restrict__ y) {
  const int64_t eights = aligned ? n / 8 : 0;
#pragma unroll 2
  for (int64_t i = ThreadIndex(); i < eights; i += ThreadCount()) {
    const Pack<4> low = LoadPack<4>(x + 8 * i), high = LoadPack<4>(x + 8 * i + 4);
    *reinterpret_cast<uint4*>(y + 8 * i) = make_uint4(
        TwoBfloat16(low.lane[0], low.lane[1]), TwoBfloat16(low.lane[2], low.lane[3]),
        TwoBfloat16(high.lane[0], high.lane[1]), TwoBfloat16(high.lane[2], high.lane[3]));
  }
  for (int64_t i = 8 * eights + ThreadIndex(); i < n; i += ThreadCount()) y[i] = ToBfloat16(x[i]);
}

}  // namespace

cudaError_t FindKernels() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, DropoutKernel);
}

cudaError_t LaunchFill(cudaStream_t stream, float value, int64_t n, float* x) {
  return LaunchMap(stream, FillOperation{value}, n, x, x, x);
}

cudaError_t LaunchAxpy(cudaStream_t stream, float alpha, int64_t n, const float* x, float* y) {
  return LaunchMap(stream, AxpyOperation{alpha}, n, x, y, y);
}

cudaError_t LaunchScale(cudaStream_t stream, float alpha, int64_t n, float* x) {
  return LaunchMap(stream, ScaleOperation{alpha}, n, x, x, x);
}

cudaError_t LaunchCopy(cudaStream_t stream, int64_t n, const float* x, float* y) {
  return LaunchMap(stream, CopyOperation(), n, x, x, y);
}

cudaError_t LaunchAdd(cudaStream_t stream, int64_t n, const float* a, const float* b, float* y) {
  return LaunchMap(stream, AddOperation(), n, a, b, y);
}

cudaError_t LaunchMultiply(cudaStream_t stream, int64_t n, const float* a, const float* b,
                           float* y) {
  return LaunchMap(stream, MultiplyOperation(), n, a, b, y);
}

cudaError_t LaunchInverseSquareRoot(cudaStream_t stream, int64_t n, float epsilon, const float* x,
                                    float* y) {
  return LaunchMap(stream, InverseSquareRootOperation{epsilon}, n, x, x, y);
}

cudaError_t LaunchActivate(cudaStream_t stream, ActivationKind kind, int64_t n, const float* x,
                           float* y) {
  switch (kind) {
    case ActivationKind::kRelu:
      return LaunchMap(stream, ActivateOperation<ActivationKind::kRelu>(), n, x, x, y);
    case ActivationKind::kTanh:
      return LaunchMap(stream, ActivateOperation<ActivationKind::kTanh>(), n, x, x, y);
    case ActivationKind::kSigmoid:
      return LaunchMap(stream, ActivateOperation<ActivationKind::kSigmoid>(), n, x, x, y);
  }
  return cudaErrorInvalidValue;
}

cudaError_t LaunchActivateBackward(cudaStream_t stream, ActivationKind kind, int64_t n,
                                   const float* y, const float* dy, float* dx) {
  switch (kind) {
    case ActivationKind::kRelu:
      return LaunchMap(stream, ActivateBackwardOperation<ActivationKind::kRelu>(), n, y, dy, dx);
    case ActivationKind::kTanh:
      return LaunchMap(stream, ActivateBackwardOperation<ActivationKind::kTanh>(), n, y, dy, dx);
    case ActivationKind::kSigmoid:
      return LaunchMap(stream, ActivateBackwardOperation<ActivationKind::kSigmoid>(), n, y, dy, dx);
  }
  return cudaErrorInvalidValue;
}

cudaError_t LaunchGate(cudaStream_t stream, GateKind kind, int64_t n, const float* x, float* y) {
  switch (kind) {
    case GateKind::kGelu:
      return LaunchMap(stream, GateOperation<GateKind::kGelu>(), n, x, x, y);
    case GateKind::kSilu:
      return LaunchMap(stream, GateOperation<GateKind::kSilu>(), n, x, x, y);
  }
  return cudaErrorInvalidValue;
}

cudaError_t LaunchGateBackward(cudaStream_t stream, GateKind kind, int64_t n, const float* x,
                               const float* dy, float* dx) {
  switch (kind) {
    case GateKind::kGelu:
      return LaunchMap(stream, GateBackwardOperation<GateKind::kGelu>(), n, x, dy, dx);
    case GateKind::kSilu:
      return LaunchMap(stream, GateBackwardOperation<GateKind::kSilu>(), n, x, dy, dx);
  }
  return cudaErrorInvalidValue;
}

cudaError_t LaunchDropout(cudaStream_t stream, float rate, const uint64_t* seed,
                          uint64_t philox_stream, int64_t n, const float* x, float* y) {
  if (n == 0) return cudaSuccess;
  const bool aligned = IsAligned(x, sizeof(Pack<4>)) && IsAligned(y, sizeof(Pack<4>));
  return Launch(DropoutKernel, BlocksFor((n + 3) / 4), stream, rate, seed, philox_stream, aligned,
                n, x, y);
}

cudaError_t LaunchToBfloat16(cudaStream_t stream, int64_t n, const float* x, uint16_t* y) {
  if (n == 0) return cudaSuccess;
  const bool aligned = IsAligned(x, sizeof(uint4)) && IsAligned(y, sizeof(uint4));
  return Launch(ToBfloat16Kernel, BlocksFor(aligned ? (n + 7) / 8 : n), stream, aligned, n, x, y);
}

}  // namespace keelson::cuda
