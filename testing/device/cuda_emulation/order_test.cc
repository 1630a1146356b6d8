// Streams, events and graphs: orders that the code asks for hold, others do not.
#include "testing/device/cuda_emulation/testing.h"

namespace keelson::cuda_emulation {
namespace {

using testing::ElementsAre;

constexpr uint64_t kSeeds = 100;

__global__ void SetKernel(float value, float* x) { *x = value; }
__global__ void AddKernel(float value, float* x) { *x += value; }
__global__ void DoubleKernel(const float* x, float* y) { *y = 2 * *x; }

using OrderTest = EmulationTest;

// Two streams: one writes x, the other reads it. What the reader sees.
float ReadBesideWriting(bool with_event) {
  GpuFloats x({1}), y({0});
  Stream writer, reader;
  Event written;
  EXPECT_EQ(Start(1, 1, writer.get(), &SetKernel, 5.0f, x.data()), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(written.get(), writer.get()), cudaSuccess);
  if (with_event) {
    EXPECT_EQ(cudaStreamWaitEvent(reader.get(), written.get()), cudaSuccess);
  }
  EXPECT_EQ(Start(1, 1, reader.get(), &DoubleKernel, x.data(), y.data()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(reader.get()), cudaSuccess);
  return y.Read()[0];
}

TEST_F(OrderTest, AnEventIsRespectedWithEverySeed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Reset(WithSeed(seed));
    ASSERT_EQ(ReadBesideWriting(true), 10) << "seed " << seed;
  }
}

TEST_F(OrderTest, AMissingEventShowsWithSomeSeed) {
  int wrong = 0;
  for (uint64_t seed = 1; seed < kSeeds; ++seed) {
    Reset(WithSeed(seed));
    wrong += ReadBesideWriting(false) != 10;
  }
  EXPECT_GT(wrong, 20);
}

TEST_F(OrderTest, AWriterThatDoesNotWaitForTheReaderShowsWithSomeSeed) {
  int wrong = 0;
  for (uint64_t seed = 1; seed < kSeeds; ++seed) {
    Reset(WithSeed(seed));
    GpuFloats x({1}), y({0});
    Stream writer, reader;
    EXPECT_EQ(Start(1, 1, reader.get(), &DoubleKernel, x.data(), y.data()), cudaSuccess);
    EXPECT_EQ(Start(1, 1, writer.get(), &SetKernel, 5.0f, x.data()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    wrong += y.Read()[0] != 2;
  }
  EXPECT_GT(wrong, 10);
}

TEST_F(OrderTest, OneStreamKeepsItsOrder) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Reset(WithSeed(seed));
    GpuFloats x({0});
    Stream stream;
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(Start(1, 1, stream.get(), &SetKernel, static_cast<float>(i), x.data()),
                cudaSuccess);
      EXPECT_EQ(Start(1, 1, stream.get(), &AddKernel, 0.5f, x.data()), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    ASSERT_EQ(x.Read()[0], 19.5f) << "seed " << seed;
  }
}

TEST_F(OrderTest, NothingIsDoneBeforeSomebodyWaits) {
  GpuFloats x({0});
  HostFloats host(1);
  Stream stream;
  host[0] = 1;
  EXPECT_EQ(cudaMemcpyAsync(x.data(), host.data(), 4, cudaMemcpyHostToDevice, stream.get()),
            cudaSuccess);
  // Too early: the copy reads it later.
  host[0] = 2;
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(x.Read()[0], 2);
}

TEST_F(OrderTest, ACopyToTheHostIsNotThereBeforeItsEvent) {
  for (uint64_t seed = 1; seed < kSeeds; ++seed) {
    Reset(WithSeed(seed));
    GpuFloats x({3});
    HostFloats host(1);
    Stream stream;
    Event done;
    host[0] = 0;
    EXPECT_EQ(cudaMemcpyAsync(host.data(), x.data(), 4, cudaMemcpyDeviceToHost, stream.get()),
              cudaSuccess);
    EXPECT_EQ(cudaEventRecord(done.get(), stream.get()), cudaSuccess);
    while (cudaEventQuery(done.get()) == cudaErrorNotReady) {
    }
    ASSERT_EQ(host[0], 3);
  }
}

TEST_F(OrderTest, AnEventThatWasNotRecordedHasPassed) {
  Stream stream;
  Event event;
  EXPECT_EQ(cudaEventQuery(event.get()), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event.get()), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream.get(), event.get()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
}

TEST_F(OrderTest, TimesGoOnFromEventToEvent) {
  GpuFloats x({0});
  Stream stream;
  Event from, to;
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, from.get(), to.get()),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(from.get(), stream.get()), cudaSuccess);
  EXPECT_EQ(Start(1, 1, stream.get(), &SetKernel, 1.0f, x.data()), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(to.get(), stream.get()), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(to.get()), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), cudaSuccess);
  EXPECT_GT(milliseconds, 0);
}

// A graph of two branches, the second of which reads what the first wrote.
struct Branches {
  Branches() : x({0}), y({0}) {
    EXPECT_EQ(cudaStreamBeginCapture(first.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(Start(1, 1, first.get(), &AddKernel, 1.0f, x.data()), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(forked.get(), first.get()), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(second.get(), forked.get()), cudaSuccess);
    EXPECT_EQ(Start(1, 1, second.get(), &DoubleKernel, x.data(), y.data()), cudaSuccess);
    EXPECT_EQ(cudaEventRecordWithFlags(read.get(), second.get(), cudaEventRecordExternal),
              cudaSuccess);
    EXPECT_EQ(cudaEventRecord(joined.get(), second.get()), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(first.get(), joined.get()), cudaSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(first.get(), &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  ~Branches() { EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess); }

  GpuFloats x, y;
  Stream first, second;
  Event forked, joined, read;
  cudaGraphExec_t executable = nullptr;
};

TEST_F(OrderTest, AGraphIsRepeatedAndNothingIsDoneWhileItIsCaptured) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Reset(WithSeed(seed));
    Branches branches;
    ASSERT_EQ(CurrentStatistics().kernel_launches, 0);
    ASSERT_THAT(branches.x.Read(), ElementsAre(0));
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(cudaGraphLaunch(branches.executable, branches.first.get()), cudaSuccess);
    }
    ASSERT_EQ(cudaEventSynchronize(branches.read.get()), cudaSuccess);
    ASSERT_THAT(branches.y.Read(), ElementsAre(6)) << "seed " << seed;
    ASSERT_EQ(cudaStreamSynchronize(branches.first.get()), cudaSuccess);
    ASSERT_EQ(CurrentStatistics().graph_captures, 1);
    ASSERT_EQ(CurrentStatistics().graph_launches, 3);
  }
}

TEST_F(OrderTest, ABranchOfAGraphIsNotOrderedWithItsStream) {
  int wrong = 0;
  for (uint64_t seed = 1; seed < kSeeds; ++seed) {
    Reset(WithSeed(seed));
    Branches branches;
    EXPECT_EQ(cudaGraphLaunch(branches.executable, branches.first.get()), cudaSuccess);
    EXPECT_EQ(Start(1, 1, branches.second.get(), &SetKernel, 7.0f, branches.y.data()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    wrong += branches.y.Read()[0] != 7;
  }
  EXPECT_GT(wrong, 10);
}

TEST_F(OrderTest, AGraphWaitsForAnEventFromOutside) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Reset(WithSeed(seed));
    GpuFloats x({1}), y({0});
    Stream upload, compute;
    Event uploaded;
    EXPECT_EQ(cudaStreamBeginCapture(compute.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(compute.get(), uploaded.get(), cudaEventWaitExternal),
              cudaSuccess);
    EXPECT_EQ(Start(1, 1, compute.get(), &DoubleKernel, x.data(), y.data()), cudaSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(compute.get(), &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
    for (float value : {4.0f, 8.0f}) {
      EXPECT_EQ(Start(1, 1, upload.get(), &SetKernel, value, x.data()), cudaSuccess);
      EXPECT_EQ(cudaEventRecord(uploaded.get(), upload.get()), cudaSuccess);
      EXPECT_EQ(cudaGraphLaunch(executable, compute.get()), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(compute.get()), cudaSuccess);
      ASSERT_THAT(y.Read(), ElementsAre(2 * value)) << "seed " << seed;
    }
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
}

TEST_F(OrderTest, GpusAreOrderedByEventsAlone) {
  int wrong = 0;
  for (uint64_t seed = 1; seed < kSeeds; ++seed) {
    for (bool with_event : {true, false}) {
      Options options = WithSeed(seed);
      options.gpus = 2;
      Reset(options);
      GpuFloats x({1});
      Stream first;
      Event written;
      EXPECT_EQ(Start(1, 1, first.get(), &SetKernel, 5.0f, x.data()), cudaSuccess);
      EXPECT_EQ(cudaEventRecord(written.get(), first.get()), cudaSuccess);
      EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
      EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
      {
        GpuFloats y({0});
        Stream second;
        if (with_event) {
          EXPECT_EQ(cudaStreamWaitEvent(second.get(), written.get()), cudaSuccess);
        }
        EXPECT_EQ(Start(1, 1, second.get(), &DoubleKernel, x.data(), y.data()), cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(second.get()), cudaSuccess);
        const bool right = y.Read()[0] == 10;
        if (with_event) {
          ASSERT_TRUE(right) << "seed " << seed;
        }
        wrong += !right;
      }
      EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    }
  }
  EXPECT_GT(wrong, 10);
}

}  // namespace
}  // namespace keelson::cuda_emulation
