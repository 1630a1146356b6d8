#include "core/device/cuda/cuda_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/kernels.h"

namespace keelson {
namespace {

std::string ErrorText(const char* call, cudaError_t error) {
  return absl::StrCat(call, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

std::string ErrorText(const char* call, cublasStatus_t status) {
  return absl::StrCat(call, ": ", cublasGetStatusString(status), " (", cublasGetStatusName(status),
                      ")");
}

absl::Status NoDeviceError(absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("device cuda: no CUDA device: ", reason));
}

// The runtime also keeps an error until it is read: it must not come back as a later launch's.
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

std::string InMiB(size_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

}  // namespace

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(int ordinal) {
  RETURN_IF_ERROR(CheckDriver());
  RETURN_IF_ERROR(CheckOrdinal(ordinal));
  std::unique_ptr<CudaContext> context(new CudaContext(ordinal));
  RETURN_IF_ERROR(context->Open());
  RETURN_IF_ERROR(context->Describe());
  return context;
}

absl::Status CudaContext::Open() {
  RETURN_IF_ERROR(Usable("cudaSetDevice", cudaSetDevice(ordinal_)));
  RETURN_IF_ERROR(Usable("cudaFuncGetAttributes", cuda::FindKernels()));
  RETURN_IF_ERROR(Usable("cudaStreamCreateWithFlags",
                         cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)));
  RETURN_IF_ERROR(Usable("cublasCreate", cublasCreate(&blas_)));
  return Usable("cublasSetStream", cublasSetStream(blas_, stream_));
}

absl::Status CudaContext::Describe() {
  cudaDeviceProp properties;
  int version = 0;
  RETURN_IF_ERROR(
      Usable("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, ordinal_)));
  RETURN_IF_ERROR(Usable("cudaRuntimeGetVersion", cudaRuntimeGetVersion(&version)));
  name_ = absl::StrCat("cuda:", ordinal_, " (", properties.name, ", compute capability ",
                       properties.major, ".", properties.minor, ", CUDA ", version / 1000, ".",
                       version % 1000 / 10, ")");
  return absl::OkStatus();
}

CudaContext::~CudaContext() {
  // Nobody is left to hear of a failure here.
  static_cast<void>(cudaSetDevice(ordinal_));
  if (stream_ != nullptr) static_cast<void>(cudaStreamSynchronize(stream_));
  if (blas_ != nullptr) static_cast<void>(cublasDestroy(blas_));
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  ForgetLastError();
}

bool CudaContext::Begin(const char* operation, std::initializer_list<CudaExtent> extents) {
  if (!status_.ok()) return false;
  operation_ = operation;
  for (const CudaExtent& extent : extents) {
    if (extent.memory == nullptr || extent.size <= extent.memory->size()) continue;
    Fail(absl::InternalError(absl::StrCat("device cuda: ", operation, ": expected memory of ",
                                          extent.size, " floats, found ", extent.memory->size())));
    return false;
  }
  return Check("cudaSetDevice", cudaSetDevice(ordinal_));
}

bool CudaContext::Check(const char* call, cudaError_t result) {
  if (result == cudaSuccess) return true;
  ForgetLastError();
  Fail(absl::InternalError(
      absl::StrCat("device cuda: ", operation_, ": ", ErrorText(call, result))));
  return false;
}

bool CudaContext::Check(const char* call, cublasStatus_t result) {
  if (result == CUBLAS_STATUS_SUCCESS) return true;
  ForgetLastError();
  Fail(absl::InternalError(
      absl::StrCat("device cuda: ", operation_, ": ", ErrorText(call, result))));
  return false;
}

void CudaContext::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

absl::Status CudaContext::AllocationError(size_t bytes, cudaError_t result) {
  ForgetLastError();
  const std::string call = absl::StrCat("device cuda: ", operation_, ": cudaMalloc of ", bytes,
                                        " bytes (", InMiB(bytes), ")");
  if (result != cudaErrorMemoryAllocation) {
    return absl::InternalError(ErrorText(call.c_str(), result));
  }
  size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  if (error != cudaSuccess) {
    ForgetLastError();
    return absl::ResourceExhaustedError(
        absl::StrCat(call, ": out of memory; ", ErrorText("cudaMemGetInfo", error)));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      call, ": out of memory: ", InMiB(free), " free of ", InMiB(total), "; use a smaller batch"));
}

}  // namespace keelson
