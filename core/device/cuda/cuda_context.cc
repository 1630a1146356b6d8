#include "core/device/cuda/cuda_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson {
namespace {

std::string ErrorText(absl::string_view call, cudaError_t error) {
  return absl::StrCat(call, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

std::string ErrorText(absl::string_view call, cublasStatus_t status) {
  return absl::StrCat(call, ": ", cublasLtGetStatusString(status), " (",
                      cublasLtGetStatusName(status), ")");
}

absl::Status NoDeviceError(absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("device cuda: no CUDA device: ", reason));
}

// The runtime keeps an error until it is read; reading it here keeps it from being taken for a
// later launch's.
void ForgetLastError() { static_cast<void>(cudaGetLastError()); }

absl::Status Usable(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  ForgetLastError();
  return NoDeviceError(ErrorText(call, error));
}

absl::Status Usable(const char* call, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return NoDeviceError(ErrorText(call, status));
}

absl::Status CheckDriver() {
  int driver_version = 0;
  RETURN_IF_ERROR(Usable("cudaDriverGetVersion", cudaDriverGetVersion(&driver_version)));
  return driver_version == 0 ? NoDeviceError("no NVIDIA driver is installed") : absl::OkStatus();
}

absl::Status CheckOrdinal(int ordinal) {
  int devices = 0;
  RETURN_IF_ERROR(Usable("cudaGetDeviceCount", cudaGetDeviceCount(&devices)));
  if (ordinal >= 0 && ordinal < devices) return absl::OkStatus();
  return NoDeviceError(
      absl::StrCat("expected a number below ", devices, " (the GPUs here), found ", ordinal));
}

absl::Status OpenStream(cudaStream_t* stream) {
  return Usable("cudaStreamCreateWithFlags",
                cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
}

void CloseStream(cudaStream_t stream) {
  if (stream == nullptr) return;
  static_cast<void>(cudaStreamSynchronize(stream));
  static_cast<void>(cudaStreamDestroy(stream));
}

std::string InMiB(size_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

std::string AllocationText(const char* call, size_t bytes) {
  return absl::StrCat(call, " of ", bytes, " bytes (", InMiB(bytes), ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(int ordinal, Precision precision) {
  RETURN_IF_ERROR(CheckDriver());
  RETURN_IF_ERROR(CheckOrdinal(ordinal));
  std::unique_ptr<CudaContext> context(new CudaContext(ordinal, precision));
  RETURN_IF_ERROR(context->Open());
  RETURN_IF_ERROR(context->Describe());
  return context;
}

absl::Status CudaContext::Open() {
  RETURN_IF_ERROR(Usable("cudaSetDevice", cudaSetDevice(ordinal_)));
  RETURN_IF_ERROR(Usable("cudaFuncGetAttributes", cuda::FindKernels()));
  for (cudaStream_t* stream : {&compute_, &upload_, &download_}) {
    RETURN_IF_ERROR(OpenStream(stream));
  }
  RETURN_IF_ERROR(Usable("cudaEventCreateWithFlags",
                         cudaEventCreateWithFlags(&order_, cudaEventDisableTiming)));
  return Usable("cublasLtCreate", cublasLtCreate(&blas_));
}

absl::Status CudaContext::Describe() {
  cudaDeviceProp properties;
  int version = 0;
  RETURN_IF_ERROR(
      Usable("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, ordinal_)));
  RETURN_IF_ERROR(Usable("cudaRuntimeGetVersion", cudaRuntimeGetVersion(&version)));
  name_ = absl::StrCat("cuda:", ordinal_, " (", properties.name, ", compute capability ",
                       properties.major, ".", properties.minor, ", CUDA ", version / 1000, ".",
                       version % 1000 / 10, ", ", PrecisionName(precision_), ")");
  return absl::OkStatus();
}

CudaContext::~CudaContext() {
  // A failure here cannot be reported to anyone.
  static_cast<void>(cudaSetDevice(ordinal_));
  for (cudaStream_t stream : {compute_, upload_, download_}) CloseStream(stream);
  if (order_ != nullptr) static_cast<void>(cudaEventDestroy(order_));
  if (blas_ != nullptr) static_cast<void>(cublasLtDestroy(blas_));
  ForgetLastError();
}

bool CudaContext::Begin(const char* operation, std::initializer_list<CudaExtent> extents) {
  if (!status_.ok()) return false;
  operation_ = operation;
  for (const CudaExtent& extent : extents) {
    if (extent.memory == nullptr || extent.size <= extent.memory->size()) continue;
    Fail(Error(absl::StrCat("expected memory of ", extent.size, " floats, found ",
                            extent.memory->size())));
    return false;
  }
  return Check("cudaSetDevice", cudaSetDevice(ordinal_));
}

bool CudaContext::BeginUnrepeated(const char* operation,
                                  std::initializer_list<CudaExtent> extents) {
  if (!Begin(operation, extents)) return false;
  if (repeating_) Fail(Error("expected outside of Repeat, found within"));
  return status_.ok();
}

void CudaContext::BeginRelease() {
  operation_ = "release";
  CountFree();
  Check("cudaSetDevice", cudaSetDevice(ordinal_));
}

bool CudaContext::Check(const char* call, cudaError_t result) {
  if (result == cudaSuccess) return true;
  ForgetLastError();
  const std::string text = ErrorText(call, result);
  Fail(result == cudaErrorMemoryAllocation
           ? absl::ResourceExhaustedError(InContext(absl::StrCat(text, "; use a smaller batch")))
           : Error(text));
  return false;
}

bool CudaContext::Check(const char* call, cublasStatus_t result) {
  if (result == CUBLAS_STATUS_SUCCESS) return true;
  ForgetLastError();
  Fail(Error(ErrorText(call, result)));
  return false;
}

void CudaContext::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

std::string CudaContext::InContext(absl::string_view text) const {
  return absl::StrCat("device cuda:", ordinal_, ": ", operation_, ": ", text);
}

absl::Status CudaContext::AllocationError(size_t bytes, cudaError_t result) const {
  ForgetLastError();
  const std::string call = AllocationText("cudaMalloc", bytes);
  if (result != cudaErrorMemoryAllocation) return Error(ErrorText(call, result));
  size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  std::string reason = absl::StrCat(": ", InMiB(free), " free of ", InMiB(total));
  if (error != cudaSuccess) {
    ForgetLastError();
    reason = absl::StrCat("; ", ErrorText("cudaMemGetInfo", error));
  }
  return absl::ResourceExhaustedError(
      InContext(absl::StrCat(call, ": out of memory", reason, "; use a smaller batch")));
}

absl::Status CudaContext::HostAllocationError(size_t bytes, cudaError_t result) const {
  ForgetLastError();
  const std::string call = AllocationText("cudaHostAlloc", bytes);
  if (result != cudaErrorMemoryAllocation) return Error(ErrorText(call, result));
  return absl::ResourceExhaustedError(
      InContext(absl::StrCat(call, ": no more of the host's memory can be page-locked")));
}

bool CudaContext::Order(cudaStream_t earlier, cudaStream_t later) {
  return Check("cudaEventRecord", cudaEventRecord(order_, earlier)) &&
         Check("cudaStreamWaitEvent", cudaStreamWaitEvent(later, order_, 0));
}

bool CudaContext::WaitForPeer(CudaContext* peer) {
  return Check("cudaEventRecord", cudaEventRecord(peer->order_, peer->compute_)) &&
         Check("cudaStreamWaitEvent", cudaStreamWaitEvent(compute_, peer->order_, 0));
}

bool CudaContext::SynchronizeStreams() {
  bool done = true;
  for (cudaStream_t stream : {compute_, upload_, download_}) {
    done = Check("cudaStreamSynchronize", cudaStreamSynchronize(stream)) && done;
  }
  return done;
}

void CudaContext::BeginRepeat(bool captured) {
  repeating_ = true;
  if (captured) capture_ = ++captures_;
}

void CudaContext::EndRepeat() {
  operation_ = "Repeat";
  repeating_ = false;
  capture_ = 0;
}

}  // namespace keelson
