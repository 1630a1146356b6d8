#include "bench/gpu/cuda_limits.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/gpu/copy_kernel.h"
#include "bench/gpu/cuda_handles.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr size_t kWorkspaceBytes = 32 << 20;
constexpr int kMostAlgorithms = 8;
// Operands repeat after this many elements, which does not affect the multiplication's speed.
constexpr size_t kPatternElements = 1 << 18;

absl::Status CheckedBlas(const char* call, cublasStatus_t result) {
  if (result == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("gpu_bench: ", call, ": ", cublasLtGetStatusString(result)));
}

// One product as cuBLASLt describes it. cuBLAS is column-major: a row-major c = a b is its
// c^T = b^T a^T.
class ProductPlan {
 public:
  ~ProductPlan() {
    if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (preference_ != nullptr) cublasLtMatmulPreferenceDestroy(preference_);
  }

  absl::Status Create(cublasLtHandle_t handle, Precision precision, const MatMulArgs& args) {
    const cudaDataType_t operand = precision == Precision::kBfloat16 ? CUDA_R_16BF : CUDA_R_32F;
    const cublasComputeType_t compute =
        precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    RETURN_IF_ERROR(CheckedBlas("cublasLtMatmulDescCreate",
                                cublasLtMatmulDescCreate(&operation_, compute, CUDA_R_32F)));
    RETURN_IF_ERROR(Transpose(CUBLASLT_MATMUL_DESC_TRANSA, args.transpose_b));
    RETURN_IF_ERROR(Transpose(CUBLASLT_MATMUL_DESC_TRANSB, args.transpose_a));
    RETURN_IF_ERROR(Layout(operand, args.k, args.n, args.transpose_b, &b_));
    RETURN_IF_ERROR(Layout(operand, args.m, args.k, args.transpose_a, &a_));
    RETURN_IF_ERROR(Layout(CUDA_R_32F, args.m, args.n, false, &c_));
    return FindAlgorithms(handle);
  }

  const std::vector<cublasLtMatmulAlgo_t>& algorithms() const { return algorithms_; }

  cublasStatus_t Start(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                       const void* a, const void* b, float* c, void* workspace,
                       cudaStream_t stream) const {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle, operation_, &one, b, b_, a, a_, &zero, c, c_, c, c_, &algorithm,
                          workspace, kWorkspaceBytes, stream);
  }

 private:
  absl::Status Transpose(cublasLtMatmulDescAttributes_t which, bool transpose) {
    const cublasOperation_t value = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    return CheckedBlas("cublasLtMatmulDescSetAttribute",
                       cublasLtMatmulDescSetAttribute(operation_, which, &value, sizeof(value)));
  }

  // A row-major matrix [rows, cols], stored the other way round when it is `transposed`.
  static absl::Status Layout(cudaDataType_t type, int64_t rows, int64_t cols, bool transposed,
                             cublasLtMatrixLayout_t* layout) {
    if (transposed) std::swap(rows, cols);
    return CheckedBlas("cublasLtMatrixLayoutCreate",
                       cublasLtMatrixLayoutCreate(layout, type, static_cast<uint64_t>(cols),
                                                  static_cast<uint64_t>(rows), cols));
  }

  absl::Status FindAlgorithms(cublasLtHandle_t handle) {
    RETURN_IF_ERROR(CheckedBlas("cublasLtMatmulPreferenceCreate",
                                cublasLtMatmulPreferenceCreate(&preference_)));
    const size_t bytes = kWorkspaceBytes;
    RETURN_IF_ERROR(CheckedBlas(
        "cublasLtMatmulPreferenceSetAttribute",
        cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &bytes, sizeof(bytes))));
    cublasLtMatmulHeuristicResult_t found[kMostAlgorithms] = {};
    int count = 0;
    RETURN_IF_ERROR(
        CheckedBlas("cublasLtMatmulAlgoGetHeuristic",
                    cublasLtMatmulAlgoGetHeuristic(handle, operation_, b_, a_, c_, c_, preference_,
                                                   kMostAlgorithms, found, &count)));
    for (int i = 0; i < count; ++i) algorithms_.push_back(found[i].algo);
    if (algorithms_.empty()) return CheckedBlas("cublasLtMatmul", CUBLAS_STATUS_NOT_SUPPORTED);
    return absl::OkStatus();
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;
};

// Random bits of values in [1, 2): of float32, or of pairs of bfloat16.
std::vector<uint32_t> Pattern(Precision precision) {
  std::vector<uint32_t> words(kPatternElements);
  std::minstd_rand random(1);
  for (uint32_t& word : words) {
    const auto bits = static_cast<uint32_t>(random());
    word = precision == Precision::kBfloat16 ? (bits & 0x007f007fu) | 0x3f803f80u
                                             : (bits & 0x007fffffu) | 0x3f800000u;
  }
  return words;
}

class RealCudaLimits : public CudaLimits {
 public:
  explicit RealCudaLimits(const TimingOptions& timing) : timing_(timing) {}
  ~RealCudaLimits() override {
    if (blas_ != nullptr) cublasLtDestroy(blas_);
  }

  absl::Status Open() {
    RETURN_IF_ERROR(stream_.Create());
    RETURN_IF_ERROR(other_stream_.Create());
    RETURN_IF_ERROR(begun_.Create());
    RETURN_IF_ERROR(done_.Create());
    return CheckedBlas("cublasLtCreate", cublasLtCreate(&blas_));
  }

  absl::StatusOr<Spread> CopyByKernel(int64_t bytes) override {
    return CopyWithin(bytes, [&](const float* from, float* to) {
      failure_.Check(
          "copy kernel",
          LaunchCopy(stream_.get(), bytes / static_cast<int64_t>(sizeof(float)), from, to));
    });
  }

  absl::StatusOr<Spread> CopyByMemcpy(int64_t bytes) override {
    return CopyWithin(bytes, [&](const float* from, float* to) {
      Copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream_);
    });
  }

  absl::StatusOr<Spread> HostToDevice(int64_t bytes) override { return Cross(bytes, true, false); }
  absl::StatusOr<Spread> DeviceToHost(int64_t bytes) override { return Cross(bytes, false, true); }
  absl::StatusOr<Spread> BothDirections(int64_t bytes) override { return Cross(bytes, true, true); }

  absl::StatusOr<Spread> Product(Precision precision, const MatMulArgs& args) override {
    ProductPlan plan;
    RETURN_IF_ERROR(plan.Create(blas_, precision, args));
    const int64_t element = precision == Precision::kBfloat16 ? 2 : 4;
    GpuMemory a, b, c, workspace;
    RETURN_IF_ERROR(AllocateOperand(precision, args.m * args.k * element, &a));
    RETURN_IF_ERROR(AllocateOperand(precision, args.k * args.n * element, &b));
    RETURN_IF_ERROR(c.Allocate(args.m * args.n * sizeof(float)));
    RETURN_IF_ERROR(workspace.Allocate(kWorkspaceBytes));
    const double operations = 2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) *
                              static_cast<double>(args.k);
    Spread best;
    for (const cublasLtMatmulAlgo_t& algorithm : plan.algorithms()) {
      ASSIGN_OR_RETURN(
          const Spread milliseconds, Time([&] {
            failure_.Update(CheckedBlas(
                "cublasLtMatmul", plan.Start(blas_, algorithm, a.as<void>(), b.as<void>(),
                                             c.as<float>(), workspace.as<void>(), stream_.get())));
          }));
      const Spread rate = PerSecond(operations, milliseconds);
      if (rate.median > best.median) best = rate;
    }
    return best;
  }

 private:
  absl::StatusOr<Spread> Time(absl::FunctionRef<void()> work) {
    StreamTimer timer(stream_.get(), &failure_);
    RETURN_IF_ERROR(timer.Create());
    return MillisecondsPerCall(timing_, &timer, work);
  }

  void Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
            const GpuStream& stream) {
    failure_.Check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, kind, stream.get()));
  }

  absl::StatusOr<Spread> CopyWithin(int64_t bytes,
                                    absl::FunctionRef<void(const float*, float*)> copy) {
    GpuMemory from, to;
    RETURN_IF_ERROR(AllocateOperand(Precision::kFloat32, bytes, &from));
    RETURN_IF_ERROR(to.Allocate(bytes));
    ASSIGN_OR_RETURN(const Spread milliseconds,
                     Time([&] { copy(from.as<float>(), to.as<float>()); }));
    return PerSecond(2.0 * static_cast<double>(bytes), milliseconds);
  }

  // The way up on the timed stream, the way down on the other one when both are there.
  absl::StatusOr<Spread> Cross(size_t bytes, bool up, bool down) {
    PageLockedMemory up_host, down_host;
    GpuMemory up_device, down_device;
    RETURN_IF_ERROR(up_host.Allocate(bytes));
    RETURN_IF_ERROR(down_host.Allocate(bytes));
    RETURN_IF_ERROR(up_device.Allocate(bytes));
    RETURN_IF_ERROR(AllocateOperand(Precision::kFloat32, bytes, &down_device));
    const GpuStream& down_stream = up ? other_stream_ : stream_;
    ASSIGN_OR_RETURN(const Spread milliseconds, Time([&] {
                       if (up && down) Join(stream_, other_stream_, begun_);
                       if (up) {
                         Copy(up_device.as<void>(), up_host.data(), bytes, cudaMemcpyHostToDevice,
                              stream_);
                       }
                       if (down) {
                         Copy(down_host.data(), down_device.as<void>(), bytes,
                              cudaMemcpyDeviceToHost, down_stream);
                       }
                       if (up && down) Join(other_stream_, stream_, done_);
                     }));
    return PerSecond(static_cast<double>(bytes), milliseconds);
  }

  // `to` waits for what is on `from`.
  void Join(const GpuStream& from, const GpuStream& to, const GpuEvent& event) {
    failure_.Check("cudaEventRecord", cudaEventRecord(event.get(), from.get()));
    failure_.Check("cudaStreamWaitEvent", cudaStreamWaitEvent(to.get(), event.get(), 0));
  }

  absl::Status AllocateOperand(Precision precision, size_t bytes, GpuMemory* memory) {
    RETURN_IF_ERROR(memory->Allocate(bytes));
    const std::vector<uint32_t> pattern = Pattern(precision);
    for (size_t at = 0; at < bytes; at += pattern.size() * sizeof(uint32_t)) {
      const size_t part = std::min(pattern.size() * sizeof(uint32_t), bytes - at);
      RETURN_IF_ERROR(Checked("cudaMemcpy", cudaMemcpy(memory->as<char>() + at, pattern.data(),
                                                       part, cudaMemcpyHostToDevice)));
    }
    return Checked("cudaDeviceSynchronize", cudaDeviceSynchronize());
  }

  const TimingOptions timing_;
  FirstFailure failure_;
  GpuStream stream_;
  GpuStream other_stream_;
  GpuEvent begun_;
  GpuEvent done_;
  cublasLtHandle_t blas_ = nullptr;
};

}  // namespace

absl::StatusOr<GpuDescription> DescribeGpu(int ordinal) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("no CUDA device: ", cudaGetErrorString(counted)));
  }
  if (ordinal >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("no CUDA device ", ordinal, ": the machine has ", count));
  }
  cudaDeviceProp properties;
  RETURN_IF_ERROR(
      Checked("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, ordinal)));
  GpuDescription gpu;
  gpu.name = properties.name;
  gpu.compute_capability = 10 * properties.major + properties.minor;
  gpu.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  RETURN_IF_ERROR(Checked("cudaDriverGetVersion", cudaDriverGetVersion(&gpu.driver_version)));
  return gpu;
}

absl::StatusOr<std::unique_ptr<CudaLimits>> CudaLimits::Create(int ordinal,
                                                               const TimingOptions& timing) {
  RETURN_IF_ERROR(DescribeGpu(ordinal).status());
  RETURN_IF_ERROR(Checked("cudaSetDevice", cudaSetDevice(ordinal)));
  auto limits = std::make_unique<RealCudaLimits>(timing);
  RETURN_IF_ERROR(limits->Open());
  return limits;
}

}  // namespace keelson::bench
