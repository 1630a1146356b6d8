// The rules of CUDA that the emulation holds programs to, faults, and the counters.
#include <nccl.h>

#include <cmath>
#include <thread>

#include "testing/device/cuda_emulation/testing.h"

namespace keelson::cuda_emulation {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

__global__ void SetAllKernel(float value, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] = value;
}
__global__ void CopyKernel(const float* x, float* y) { *y = *x; }

using RulesTest = EmulationTest;

TEST_F(RulesTest, FreshMemoryIsFullOfNan) {
  GpuFloats x(1000);
  for (float value : x.Read()) ASSERT_TRUE(std::isnan(value));
  HostFloats host(10);
  for (size_t i = 0; i < 10; ++i) ASSERT_TRUE(std::isnan(host[i]));
}

TEST_F(RulesTest, MemoryEndsAndSaysHowMuchIsFree) {
  Options options;
  options.memory_bytes = 10 << 20;
  Reset(options);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 11 << 20), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaMalloc(&memory, 4 << 20), cudaSuccess);
  size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, size_t{6} << 20);
  EXPECT_EQ(total, size_t{10} << 20);
  EXPECT_EQ(BytesInUse(0), size_t{4} << 20);
  EXPECT_EQ(Leaks(), "1 allocations of GPU memory");
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(RulesTest, AnAsynchronousCopyNeedsPageLockedMemory) {
  GpuFloats x(4);
  std::vector<float> pageable(4);
  EXPECT_EQ(cudaMemcpyAsync(x.data(), pageable.data(), 16, cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(pageable.data(), x.data(), 16, cudaMemcpyDeviceToHost, nullptr),
            cudaErrorInvalidValue);
  EXPECT_THAT(Complaints(), Contains(HasSubstr("is not page-locked")));
  EXPECT_EQ(cudaHostRegister(pageable.data(), 16, cudaHostRegisterDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(pageable.data(), x.data(), 16, cudaMemcpyDeviceToHost, nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pageable.data()), cudaSuccess);
}

TEST_F(RulesTest, ACopyStaysWithinItsAllocations) {
  GpuFloats x(4);
  HostFloats host(8);
  EXPECT_EQ(cudaMemcpyAsync(x.data(), host.data(), 20, cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
  EXPECT_THAT(Complaints(), ElementsAre(HasSubstr("is not within an allocation of GPU 0")));
  EXPECT_EQ(cudaMemcpyAsync(x.data(), host.data(), 16, cudaMemcpyDeviceToHost, nullptr),
            cudaErrorInvalidValue);
}

TEST_F(RulesTest, AWriteBehindAnAllocationIsFoundWhenItIsFreed) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
#if !defined(__SANITIZE_ADDRESS__)  // which finds it earlier
  EXPECT_EQ(Start(1, 1, nullptr, &SetAllKernel, 1.0f, int64_t{2}, static_cast<float*>(memory)),
            cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorIllegalAddress);
  EXPECT_THAT(Complaints(), ElementsAre(HasSubstr("behind the allocation")));
#else
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
#endif
}

using RulesDeathTest = RulesTest;

#if !defined(__SANITIZE_THREAD__)  // reports it in its own way
TEST_F(RulesDeathTest, TheHostCannotTouchAGpusMemory) {
  GpuFloats x({1});
  EXPECT_DEATH(*static_cast<volatile float*>(x.data()) = 2,
               "the host's code touched memory of a GPU");
}

TEST_F(RulesDeathTest, AKernelCannotRunOnBehindItsMemory) {
  GpuFloats x(64);
  EXPECT_EQ(Start(1, 1, nullptr, &SetAllKernel, 1.0f, int64_t{65}, x.data()), cudaSuccess);
  EXPECT_DEATH(cudaDeviceSynchronize(), "emulated CUDA: an invalid access");
  Reset({});
}
#endif

TEST_F(RulesTest, AKernelNeedsMemoryThatItMayUse) {
  Options options;
  options.gpus = 2;
  Reset(options);
  float on_stack = 0;
  EXPECT_EQ(Start(1, 1, nullptr, &SetAllKernel, 1.0f, int64_t{1}, &on_stack),
            cudaErrorIllegalAddress);
  EXPECT_THAT(Complaints(), Contains(HasSubstr("is no memory of a GPU and not page-locked")));
  {
    GpuFloats x({1});
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    GpuFloats y({0});
    EXPECT_EQ(Start(1, 1, nullptr, &CopyKernel, x.data(), y.data()), cudaErrorIllegalAddress);
    EXPECT_THAT(Complaints(), Contains(HasSubstr("is memory of GPU 0, without peer access")));
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
    EXPECT_EQ(Start(1, 1, nullptr, &CopyKernel, x.data(), y.data()), cudaSuccess);
    EXPECT_THAT(y.Read(), ElementsAre(1));
    EXPECT_EQ(cudaDeviceDisablePeerAccess(0), cudaSuccess);
    // A copy from GPU to GPU needs none.
    EXPECT_EQ(cudaMemsetAsync(y.data(), 0, 4), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeerAsync(y.data(), 1, x.data(), 0, 4), cudaSuccess);
    EXPECT_THAT(y.Read(), ElementsAre(1));
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  }
  float* freed = nullptr;
  EXPECT_EQ(cudaMalloc(&freed, 4), cudaSuccess);
  GpuFloats other({1});
  EXPECT_EQ(cudaFree(freed), cudaSuccess);
  EXPECT_EQ(Start(1, 1, nullptr, &SetAllKernel, 1.0f, int64_t{1}, freed), cudaErrorIllegalAddress);
  EXPECT_THAT(Complaints(), Contains(HasSubstr("outside of every allocation")));
  EXPECT_EQ(cudaFree(freed), cudaErrorInvalidValue);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
}

TEST_F(RulesTest, PeersCanBeOutOfReach) {
  Options options;
  options.gpus = 2;
  options.peer_access = false;
  Reset(options);
  int can_access = 1;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can_access, 0, 1), cudaSuccess);
  EXPECT_EQ(can_access, 0);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
}

TEST_F(RulesTest, AStreamOfAnotherGpuIsNoneForAKernel) {
  Options options;
  options.gpus = 2;
  Reset(options);
  GpuFloats x({1});
  Stream stream;
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(Start(1, 1, stream.get(), &SetAllKernel, 1.0f, int64_t{1}, x.data()),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(RulesTest, AMachineWithoutGpusOrWithoutDriver) {
  Options options;
  options.gpus = 0;
  Reset(options);
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorNoDevice);
  options.driver = false;
  Reset(options);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  int version = -1;
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 0);
  Reset({});
}

// Begins a capture, calls `call`, ends the capture: what both return.
template <typename F>
std::pair<cudaError_t, cudaError_t> WithinCapture(F call) {
  Stream stream;
  EXPECT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const cudaError_t error = call(stream.get());
  cudaGraph_t graph = nullptr;
  const cudaError_t end = cudaStreamEndCapture(stream.get(), &graph);
  EXPECT_EQ(graph == nullptr, end != cudaSuccess);
  if (graph != nullptr) {
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  return {error, end};
}

TEST_F(RulesTest, WhatACaptureForbidsFailsAndSpoilsIt) {
  const auto forbidden =
      testing::Pair(cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated);
  EXPECT_THAT(WithinCapture([](cudaStream_t stream) { return cudaStreamSynchronize(stream); }),
              forbidden);
  EXPECT_THAT(WithinCapture([](cudaStream_t stream) { return cudaStreamQuery(stream); }),
              forbidden);
  EXPECT_THAT(WithinCapture([](cudaStream_t) { return cudaDeviceSynchronize(); }), forbidden);
  void* memory = nullptr;
  EXPECT_THAT(WithinCapture([&](cudaStream_t) { return cudaMalloc(&memory, 4); }), forbidden);
  EXPECT_THAT(WithinCapture([&](cudaStream_t) { return cudaHostAlloc(&memory, 4, 0); }), forbidden);
  GpuFloats x({1});
  EXPECT_THAT(WithinCapture([&](cudaStream_t) { return cudaFree(x.data()); }), forbidden);
  EXPECT_THAT(WithinCapture([&](cudaStream_t) {
                float host = 0;
                return cudaMemcpy(&host, x.data(), 4, cudaMemcpyDeviceToHost);
              }),
              testing::Pair(cudaErrorStreamCaptureImplicit, cudaErrorStreamCaptureInvalidated));
  Event event;
  EXPECT_THAT(WithinCapture([&](cudaStream_t) { return cudaEventSynchronize(event.get()); }),
              forbidden);
  EXPECT_THAT(WithinCapture([&](cudaStream_t stream) {
                EXPECT_EQ(cudaEventRecord(event.get(), stream), cudaSuccess);
                return cudaEventQuery(event.get());
              }),
              testing::Pair(cudaErrorCapturedEvent, cudaErrorStreamCaptureInvalidated));
}

TEST_F(RulesTest, ACaptureForbidsNothingToOtherThreads) {
  EXPECT_THAT(WithinCapture([&](cudaStream_t) {
                cudaError_t error = cudaErrorUnknown;
                std::thread([&] { error = cudaDeviceSynchronize(); }).join();
                return error;
              }),
              testing::Pair(cudaSuccess, cudaSuccess));
}

TEST_F(RulesTest, ACaptureIsJoinedAndIsolated) {
  Stream other;
  Event outside, forked;
  GpuFloats x({1});
  EXPECT_EQ(cudaEventRecord(outside.get(), other.get()), cudaSuccess);
  EXPECT_THAT(WithinCapture(
                  [&](cudaStream_t stream) { return cudaStreamWaitEvent(stream, outside.get()); }),
              testing::Pair(cudaErrorStreamCaptureIsolation, cudaErrorStreamCaptureInvalidated));
  EXPECT_THAT(WithinCapture([&](cudaStream_t stream) {
                EXPECT_EQ(cudaEventRecord(forked.get(), stream), cudaSuccess);
                EXPECT_EQ(cudaStreamWaitEvent(other.get(), forked.get()), cudaSuccess);
                return Start(1, 1, other.get(), &SetAllKernel, 1.0f, int64_t{1}, x.data());
              }),
              testing::Pair(cudaSuccess, cudaErrorStreamCaptureUnjoined));
  // The stream is free again.
  EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaSuccess);
  // The flags for events of graphs are for captures alone.
  EXPECT_EQ(cudaEventRecordWithFlags(outside.get(), other.get(), cudaEventRecordExternal),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamWaitEvent(other.get(), outside.get(), cudaEventWaitExternal),
            cudaErrorInvalidValue);
}

TEST_F(RulesTest, AGraphThatUsesFreedMemoryFails) {
  Stream stream;
  GpuFloats kept({1});
  float* freed = nullptr;
  EXPECT_EQ(cudaMalloc(&freed, 4), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(Start(1, 1, stream.get(), &SetAllKernel, 1.0f, int64_t{1}, freed), cudaSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  EXPECT_EQ(cudaFree(freed), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream.get()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorIllegalAddress);
  EXPECT_THAT(Complaints(), ElementsAre(HasSubstr("outside of every allocation")));
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_F(RulesTest, ACallFailsWhenItIsToldTo) {
  GpuFloats x({1});
  FailCall("cudaMemsetAsync", 2, cudaErrorLaunchFailure);
  EXPECT_EQ(PendingFaults(), 1);
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, 4), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(x.data(), 1, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(PendingFaults(), 0);
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, 4), cudaSuccess);
  EXPECT_THAT(x.Read(), ElementsAre(0));
  FailCall("*", 1, cudaErrorUnknown);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorUnknown);
}

TEST_F(RulesTest, WorkThatFailsSpoilsTheGpu) {
  GpuFloats x({1});
  FailExecution(1, cudaErrorLaunchFailure);
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, 4), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorLaunchFailure);
}

TEST_F(RulesTest, CountsWhatIsAskedFor) {
  GpuFloats x(4), y(4);
  HostFloats host(4);
  Stream stream;
  const Statistics before = CurrentStatistics();
  EXPECT_EQ(cudaMemcpyAsync(x.data(), host.data(), 16, cudaMemcpyHostToDevice, stream.get()),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(y.data(), x.data(), 16, cudaMemcpyDeviceToDevice, stream.get()),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), y.data(), 12, cudaMemcpyDeviceToHost, stream.get()),
            cudaSuccess);
  EXPECT_EQ(CurrentStatistics().stream_synchronizations, before.stream_synchronizations);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  const Statistics after = CurrentStatistics();
  EXPECT_EQ(after.calls - before.calls, 4);
  EXPECT_EQ(after.copies_to_device - before.copies_to_device, 1);
  EXPECT_EQ(after.copies_on_device - before.copies_on_device, 1);
  EXPECT_EQ(after.copies_to_host - before.copies_to_host, 1);
  EXPECT_EQ(after.bytes_to_device - before.bytes_to_device, 16);
  EXPECT_EQ(after.bytes_to_host - before.bytes_to_host, 12);
  EXPECT_EQ(after.executed - before.executed, 3);
  EXPECT_EQ(after.stream_synchronizations - before.stream_synchronizations, 1);
  EXPECT_EQ(before.allocations, 3);
}

TEST_F(RulesTest, WhatIsLeftIsListed) {
  Stream stream;
  Event event;
  HostFloats host(4);
  EXPECT_EQ(Leaks(), "1 page-locked memories, 1 streams, 1 events");
}

}  // namespace
}  // namespace keelson::cuda_emulation
