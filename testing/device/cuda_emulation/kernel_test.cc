// How kernels are executed: indices, barriers, exchanges within warps, atomics.
#include <cmath>
#include <numeric>

#include "testing/device/cuda_emulation/testing.h"

namespace keelson::cuda_emulation {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;

using EmulatedKernelTest = EmulationTest;

constexpr unsigned kWhole = 0xffffffffu;

__global__ void NumberKernel(float* x) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned number = block * blockDim.x * blockDim.y * blockDim.z + thread;
  x[number] = static_cast<float>(number);
}

TEST_F(EmulatedKernelTest, EveryThreadOfEveryBlockIsExecutedOnce) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Reset(WithSeed(seed));
    GpuFloats x(2 * 3 * 2 * 4 * 5 * 2);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2, 3, 2);
    config.blockDim = dim3(4, 5, 2);
    EXPECT_EQ(cudaLaunchKernelEx(&config, &NumberKernel, x.data()), cudaSuccess);
    std::vector<float> expected(x.bytes() / sizeof(float));
    std::iota(expected.begin(), expected.end(), 0.0f);
    ASSERT_EQ(x.Read(), expected) << "seed " << seed;
  }
}

// x[thread] = x[thread + 1] of the block, by way of shared memory.
__global__ void RotateKernel(bool with_barrier, float* x) {
  __shared__ float values[256];
  values[threadIdx.x] = x[threadIdx.x];
  if (with_barrier) __syncthreads();
  x[threadIdx.x] = values[(threadIdx.x + 1) % blockDim.x];
}

// `first`: another one each time, for the shared memory still holds what was there before.
bool RotatesRightly(bool with_barrier, uint64_t first) {
  std::vector<float> values(256), expected(256);
  std::iota(values.begin(), values.end(), static_cast<float>(first));
  for (size_t i = 0; i < 256; ++i) expected[i] = values[(i + 1) % 256];
  GpuFloats x(values);
  EXPECT_EQ(Start(1, 256, nullptr, &RotateKernel, with_barrier, x.data()), cudaSuccess);
  return x.Read() == expected;
}

TEST_F(EmulatedKernelTest, ABarrierMakesEveryWriteVisible) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Reset(WithSeed(seed));
    ASSERT_TRUE(RotatesRightly(true, 256 * seed)) << "seed " << seed;
  }
}

TEST_F(EmulatedKernelTest, AMissingBarrierShows) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Reset(WithSeed(seed));
    ASSERT_FALSE(RotatesRightly(false, 256 * seed)) << "seed " << seed;
  }
}

__global__ void HalfBarrierKernel() {
  if (threadIdx.x < 32) __syncthreads();
}

TEST_F(EmulatedKernelTest, ABarrierThatNotAllThreadsReachFails) {
  EXPECT_EQ(Start(2, 64, nullptr, &HalfBarrierKernel), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_THAT(Complaints(),
              testing::ElementsAre(AllOf(HasSubstr("cannot go on: of 64 threads 32 have ended, 32 "
                                                   "wait at __syncthreads"))));
  // As with CUDA, nothing works on that GPU any more.
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  Reset({});
  GpuFloats x({0});
  EXPECT_TRUE(RotatesRightly(true, 1));
}

__global__ void HalfWarpExchangeKernel() {
  if (threadIdx.x % 2 == 0) __shfl_xor_sync(kWhole, 1.0f, 1);
}

__global__ void ForeignMaskKernel() { __ballot_sync(0x2u, threadIdx.x == 0); }

TEST_F(EmulatedKernelTest, AnExchangeThatNotAllLanesReachFails) {
  EXPECT_EQ(Start(1, 32, nullptr, &HalfWarpExchangeKernel), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_THAT(Complaints(), Contains(HasSubstr("16 have ended, 16 wait at __shfl_xor_sync")));
  Reset({});
  EXPECT_EQ(Start(1, 1, nullptr, &ForeignMaskKernel), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_THAT(Complaints(), Contains(HasSubstr("__ballot_sync: the mask does not name the lane")));
}

// What each lane gets of every kind of exchange of its number.
__global__ void ExchangeKernel(float* by_index, float* up, float* down, float* by_xor,
                               float* in_groups, double* wide) {
  const unsigned lane = threadIdx.x % 32;
  const float value = static_cast<float>(threadIdx.x);
  by_index[threadIdx.x] = __shfl_sync(kWhole, value, 5);
  up[threadIdx.x] = __shfl_up_sync(kWhole, value, 3);
  down[threadIdx.x] = __shfl_down_sync(kWhole, value, 3);
  by_xor[threadIdx.x] = __shfl_xor_sync(kWhole, value, 9);
  in_groups[threadIdx.x] = __shfl_down_sync(kWhole, value, 1, 8);
  const double sent = lane + 0.125;
  wide[threadIdx.x] = __shfl_xor_sync(kWhole, sent, 1);
}

TEST_F(EmulatedKernelTest, ExchangesWithinWarps) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Reset(WithSeed(seed));
    GpuFloats by_index(64), up(64), down(64), by_xor(64), in_groups(64), wide(128);
    EXPECT_EQ(Start(1, 64, nullptr, &ExchangeKernel, by_index.data(), up.data(), down.data(),
                    by_xor.data(), in_groups.data(), reinterpret_cast<double*>(wide.data())),
              cudaSuccess);
    const std::vector<float> wide_halves = wide.Read();
    const double* const wide_values = reinterpret_cast<const double*>(wide_halves.data());
    for (size_t i = 0; i < 64; ++i) {
      const size_t warp = i / 32 * 32, lane = i % 32;
      EXPECT_EQ(by_index.Read()[i], warp + 5);
      EXPECT_EQ(up.Read()[i], lane < 3 ? i : i - 3);
      EXPECT_EQ(down.Read()[i], lane > 28 ? i : i + 3);
      EXPECT_EQ(by_xor.Read()[i], warp + (lane ^ 9));
      EXPECT_EQ(in_groups.Read()[i], lane % 8 == 7 ? i : i + 1);
      EXPECT_EQ(wide_values[i], (lane ^ 1) + 0.125);
    }
  }
}

// Two halves of a warp that go different ways.
__global__ void HalvesKernel(float* sums, float* ballots) {
  const bool low = threadIdx.x < 16;
  const unsigned mask = low ? 0x0000ffffu : 0xffff0000u;
  float value = static_cast<float>(threadIdx.x);
  if (low) {
    for (int offset = 8; offset > 0; offset /= 2) value += __shfl_xor_sync(mask, value, offset);
  } else {
    value = -__shfl_sync(mask, value, 31);
  }
  sums[threadIdx.x] = value;
  __syncwarp();
  ballots[threadIdx.x] = static_cast<float>(__popc(__ballot_sync(kWhole, threadIdx.x % 3 == 0)));
}

TEST_F(EmulatedKernelTest, MasksNameTheLanesThatTakePart) {
  GpuFloats sums(32), ballots(32);
  EXPECT_EQ(Start(1, 32, nullptr, &HalvesKernel, sums.data(), ballots.data()), cudaSuccess);
  const std::vector<float> found = sums.Read();
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(found[i], i < 16 ? 120 : -31);
  EXPECT_THAT(ballots.Read(), Each(11));
}

__global__ void ReadForeignLaneKernel(float* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 20);
}

TEST_F(EmulatedKernelTest, ALaneThatGivesNothingGivesNan) {
  GpuFloats x(16);
  EXPECT_EQ(Start(1, 32, nullptr, &ReadForeignLaneKernel, x.data()), cudaSuccess);
  for (float value : x.Read()) EXPECT_TRUE(std::isnan(value));
}

__global__ void CountKernel(unsigned* count, int* most) {
  atomicAdd(count, 1u);
  atomicMax(most, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

TEST_F(EmulatedKernelTest, AtomicsCountEveryThread) {
  GpuFloats x(2);
  EXPECT_EQ(cudaMemset(x.data(), 0, x.bytes()), cudaSuccess);
  EXPECT_EQ(Start(10, 100, nullptr, &CountKernel, reinterpret_cast<unsigned*>(x.data()),
                  reinterpret_cast<int*>(x.data() + 1)),
            cudaSuccess);
  const std::vector<float> found = x.Read();
  EXPECT_EQ(__float_as_uint(found[0]), 1000u);
  EXPECT_EQ(__float_as_int(found[1]), 999);
}

__global__ void NothingKernel() {}

TEST_F(EmulatedKernelTest, ImpossibleLaunchesFail) {
  EXPECT_EQ(Start(0, 32, nullptr, &NothingKernel), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(Start(1, 0, nullptr, &NothingKernel), cudaErrorInvalidConfiguration);
  EXPECT_EQ(Start(1, 1025, nullptr, &NothingKernel), cudaErrorInvalidConfiguration);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1, 65536);
  EXPECT_EQ(cudaLaunchKernelEx(&config, &NothingKernel), cudaErrorInvalidConfiguration);
  config.gridDim = dim3(1, 65535);
  EXPECT_EQ(cudaLaunchKernelEx(&config, &NothingKernel), cudaSuccess);
  config.dynamicSmemBytes = 4;
  EXPECT_EQ(cudaLaunchKernelEx(&config, &NothingKernel), cudaErrorNotSupported);
  EXPECT_EQ(CurrentStatistics().kernel_launches, 1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace
}  // namespace keelson::cuda_emulation
