// Errors of CUDA: each leaves a Status that names operation and call, and nothing behind.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "testing/device/emulated_gpu_testing.h"

namespace keelson {
namespace {

using cuda_emulation::FailCall;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// A step with every kind of call.
absl::Status RunSteps(Device* device) {
  constexpr int64_t kSize = 40;
  ASSIGN_OR_RETURN(const Memory x, device->Allocate(kSize));
  ASSIGN_OR_RETURN(const Memory y, device->Allocate(kSize));
  ASSIGN_OR_RETURN(const Memory gradient, device->Allocate(kSize));
  ASSIGN_OR_RETURN(const auto from, device->AllocateHost(2 * kSize));
  const WireLayout layout = WholeArrayLayout(WireFormat::kInt8, kSize);
  ASSIGN_OR_RETURN(const auto to, device->AllocateHost(layout.bytes));
  ASSIGN_OR_RETURN(const auto encoder, device->NewGradientEncoder(layout));
  ASSIGN_OR_RETURN(const auto decoder, device->NewValueDecoder(WireFormat::kFloat16, kSize));
  ASSIGN_OR_RETURN(const auto uploaded, device->NewEvent());
  ASSIGN_OR_RETURN(const auto downloaded, device->NewEvent());
  for (uint64_t step = 0; step < 3; ++step) {
    device->SetSeed(step);
    device->CopyToDevice(Floats(kSize, 1), x.get());
    device->Upload(from->bytes(), nullptr, decoder.get(), y.get(), uploaded.get());
    device->Repeat(1, [&] {
      device->WaitFor(*uploaded);
      device->Dropout(0.5f, 1, kSize, *x, x.get());
      device->MatMul({4, 4, 10}, *x, *y, {.activation = ActivationKind::kRelu}, gradient.get());
      device->DenseGradients(4, 5, 5, *x, *y, gradient.get(), y.get());
      device->Conv2D({1, 3, 3, 1, 1, 1, 2, 3}, *x, *y, {}, gradient.get());
      device->Sum(kSize, *x, y.get());
      DeviceMemory* const clipped[] = {gradient.get()};
      device->ClipByGlobalNorm(1, clipped);
      device->Download(*gradient, y.get(), encoder.get(), to->bytes(), downloaded.get());
    });
    static_cast<void>(device->Passed(*downloaded));
    RETURN_IF_ERROR(device->Await(*downloaded));
  }
  static_cast<void>(device->MillisecondsBetween(*uploaded, *downloaded));
  Floats values(kSize);
  RETURN_IF_ERROR(device->CopyToHost(*gradient, absl::MakeSpan(values)));
  return device->Synchronize();
}

class CudaFailuresTest : public EmulatedGpuTest {};

TEST_F(CudaFailuresTest, WithoutADriverOrGpu) {
  Reset({.driver = false});
  EXPECT_EQ(Message(CreateCudaDevice(0).status()),
            "device cuda: no CUDA device: no NVIDIA driver is installed");
  Reset({.gpus = 0});
  absl::Status status = CreateCudaDevice(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), StartsWith("device cuda: no CUDA device: "));
  Reset({.gpus = 2});
  for (int ordinal : {-1, 2}) {
    status = CreateCudaDevice(ordinal).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(Message(status),
              absl::StrCat("device cuda: no CUDA device: expected a number below 2 (the GPUs "
                           "here), found ",
                           ordinal));
  }
}

TEST_F(CudaFailuresTest, AGpuWithoutRoomIsNotUsable) {
  Reset({.memory_bytes = size_t{1} << 20});
  const absl::Status status = CreateCudaDevice(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status),
              StartsWith("device cuda: no CUDA device: device cuda:0: Open: cudaMalloc of 33554432 "
                         "bytes (32 MiB): out of memory: "));
}

TEST_F(CudaFailuresTest, OutOfMemorySaysHowMuchAndDoesNotLast) {
  Reset({.memory_bytes = size_t{100} << 20});
  Open();
  const int64_t floats = int64_t{80} << 18;  // 80 MiB
  const absl::Status status = device_->Allocate(floats).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status),
              MatchesRegex("device cuda:0: Allocate: cudaMalloc of 83886080 bytes \\(80 MiB\\): "
                           "out of memory: [0-9]+ MiB free of 100 MiB; use a smaller batch"));
  EXPECT_EQ(
      device_->NewGradientEncoder(WholeArrayLayout(WireFormat::kInt8, floats)).status().code(),
      absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(device_->NewValueDecoder(WireFormat::kFloat16, 2 * floats).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(device_->status().ok());
  EXPECT_EQ(Get(*Put({1, 2})), Floats({1, 2}));
}

TEST_F(CudaFailuresTest, OutOfMemoryWithoutKnowingHowMuchThereIs) {
  Open();
  FailCall("cudaMalloc", 1, cudaErrorMemoryAllocation);
  FailCall("cudaMemGetInfo", 1, cudaErrorUnknown);
  EXPECT_EQ(Message(device_->Allocate(1).status()),
            "device cuda:0: Allocate: cudaMalloc of 4 bytes (0 MiB): out of memory; "
            "cudaMemGetInfo: unknown error (cudaErrorUnknown); use a smaller batch");
  FailCall("cudaMalloc", 1, cudaErrorNotSupported);
  const absl::Status status = device_->Allocate(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("Allocate: cudaMalloc of 4 bytes (0 MiB): "));
  EXPECT_TRUE(device_->status().ok());
}

TEST_F(CudaFailuresTest, OutOfPageLockedMemory) {
  Open();
  FailCall("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
  const absl::Status status = device_->AllocateHost(5000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status),
            "device cuda:0: AllocateHost: cudaHostAlloc of 5120 bytes (0 MiB): no more of the "
            "host's memory can be page-locked");
  EXPECT_TRUE(device_->AllocateHost(5000).ok());
}

TEST_F(CudaFailuresTest, AGraphMayNeedMemoryThatIsNotThere) {
  Open();
  const Memory x = *device_->Allocate(4);
  FailCall("cudaGraphInstantiate", 1, cudaErrorMemoryAllocation);
  for (int i = 0; i < 2; ++i) {
    device_->Repeat(1, [&] { device_->Scale(2, 4, x.get()); });
  }
  EXPECT_EQ(device_->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(device_->status()),
            "device cuda:0: Repeat: cudaGraphInstantiate: out of memory "
            "(cudaErrorMemoryAllocation); use a smaller batch");
}

// Scratch memory is needed within operations, which have no other way to fail.
TEST_F(CudaFailuresTest, AnOperationThatRunsOutOfMemoryFails) {
  Reset({.memory_bytes = size_t{48} << 20});
  Open();
  const Memory x = *device_->Allocate(int64_t{1} << 20), y = *device_->Allocate(int64_t{1} << 20);
  const Memory filter = *device_->Allocate(49 * 4);
  device_->Conv2D({1024, 32, 32, 1, 32, 32, 1, 7, 1, 3, 3}, *x, *filter, {}, y.get());
  const absl::Status status = device_->Synchronize();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status), StartsWith("device cuda:0: Conv2D: cudaMalloc of "));
  EXPECT_THAT(Message(status), HasSubstr("use a smaller batch"));
}

// Whether the call that failed is one that gives something back.
bool LeavesSomething(const absl::Status& status) {
  for (const char* part : {"Free", "Destroy", "cudaStreamEndCapture"}) {
    if (absl::StrContains(status.message(), part)) return true;
  }
  return false;
}

// Whichever call fails, in the order of the calls.
TEST_F(CudaFailuresTest, EachCallMayFail) {
  int64_t count = 0;
  while (true) {
    ++count;
    ASSERT_LT(count, 10000);
    Reset({});
    FailCall("*", count, cudaErrorUnknown);
    SCOPED_TRACE(absl::StrCat("call ", count));
    auto device = CreateCudaDevice(0);
    if (!device.ok()) {
      EXPECT_THAT(Message(device.status()),
                  MatchesRegex("device cuda: no CUDA device: .*[a-zA-Z]+: .+ \\(.+\\)"));
      EXPECT_EQ(cuda_emulation::Leaks(), "");
      continue;
    }
    const absl::Status result = RunSteps(device->get());
    // Failures of freeing memory count, too.
    const absl::Status status = result.ok() ? (*device)->status() : result;
    const bool failed = cuda_emulation::PendingFaults() == 0;
    if (failed) {
      EXPECT_FALSE(status.ok());
      EXPECT_THAT(Message(status), MatchesRegex("device cuda:0: [a-zA-Z0-9]+: .+: .+ \\(.+\\)"));
    } else {
      ASSERT_TRUE(status.ok()) << status;
    }
    device->reset();
    if (failed && !LeavesSomething(status)) {
      EXPECT_EQ(cuda_emulation::Leaks(), "") << status;
    }
    EXPECT_THAT(cuda_emulation::Complaints(), testing::IsEmpty());
    if (cuda_emulation::PendingFaults() > 0) break;
  }
  EXPECT_GT(count, 100);
  Reset({});
}

// A kernel or copy that fails while it is executed: CUDA says so at some later call, and at each.
TEST_F(CudaFailuresTest, WorkMayFail) {
  for (int64_t count = 1; count < 40; count += 3) {
    Reset({});
    SCOPED_TRACE(absl::StrCat("work ", count));
    auto device = CreateCudaDevice(0);
    ASSERT_TRUE(device.ok()) << device.status();
    cuda_emulation::FailExecution(count, cudaErrorLaunchFailure);
    const absl::Status status = RunSteps(device->get());
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(Message(status), MatchesRegex("device cuda:0: [a-zA-Z0-9]+: .+: .+ \\(.+\\)"));
    EXPECT_EQ((*device)->Synchronize(), status);
    EXPECT_EQ((*device)->status(), status);
    EXPECT_FALSE((*device)->Allocate(1).ok());
    device->reset();
  }
  Reset({});
}

TEST_F(CudaFailuresTest, NamesOperationAndCall) {
  struct Case {
    const char* call;
    int error;
    const char* text;
  };
  for (const Case& c :
       {Case{"cudaLaunchKernelEx", cudaErrorInvalidValue, "Axpy: AxpyKernel: "},
        Case{"cublasLtMatmul", CUBLAS_STATUS_EXECUTION_FAILED, "MatMul: cublasLtMatmul: "},
        Case{"cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_INTERNAL_ERROR,
             "MatMul: cublasLtMatmulAlgoGetHeuristic: "}}) {
    Open();
    const Memory x = Put(Floats(4, 1)), y = Put(Floats(4, 1));
    FailCall(c.call, 1, c.error);
    device_->Axpy(1, 4, *x, y.get());
    device_->MatMul({2, 2, 2}, *x, *x, {}, y.get());
    EXPECT_EQ(device_->status().code(), absl::StatusCode::kInternal) << c.call;
    EXPECT_THAT(Message(device_->status()), StartsWith(absl::StrCat("device cuda:0: ", c.text)));
    EXPECT_EQ(device_->Synchronize(), device_->status());
  }
}

}  // namespace
}  // namespace keelson
