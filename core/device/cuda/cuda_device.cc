#include "core/device/cuda/cuda_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/cuda_device_impl.h"
#include "core/device/cuda/cuda_event.h"
#include "core/device/cuda/cuda_wire.h"

namespace keelson {
namespace {

const CudaEvent& Cuda(const DeviceEvent& event) { return static_cast<const CudaEvent&>(event); }
CudaEvent* Cuda(DeviceEvent* event) { return static_cast<CudaEvent*>(event); }

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(int ordinal, Precision precision) {
  ASSIGN_OR_RETURN(auto context, CudaContext::Create(ordinal, precision));
  auto device = std::make_unique<CudaDevice>(std::move(context));
  RETURN_IF_ERROR(device->Open());
  return device;
}

CudaDevice::CudaDevice(std::unique_ptr<CudaContext> context)
    : context_(std::move(context)),
      host_pool_(context_.get()),
      staging_(context_.get(), &host_pool_),
      scratch_(context_.get()),
      encode_scratch_(context_.get()),
      products_(context_.get()),
      convolution_(context_.get(), &products_),
      graphs_(context_.get()) {}

CudaDevice::~CudaDevice() = default;

absl::Status CudaDevice::Open() {
  const auto open = [this]() -> absl::Status {
    if (!context_->Begin("Open")) return context_->status();
    RETURN_IF_ERROR(products_.Open());
    ASSIGN_OR_RETURN(seed_, AllocateCudaZeros(sizeof(uint64_t), context_.get()));
    return absl::OkStatus();
  };
  const absl::Status opened = open();
  if (opened.ok()) return opened;
  // A GPU without room even for this is not usable.
  return absl::FailedPreconditionError(
      absl::StrCat("device cuda: no CUDA device: ", opened.message()));
}

// Memory

absl::StatusOr<std::unique_ptr<DeviceMemory>> CudaDevice::Allocate(int64_t floats) {
  if (!context_->BeginUnrepeated("Allocate")) return context_->status();
  ASSIGN_OR_RETURN(CudaBuffer zeros, AllocateCudaZeros(CudaFloatBytes(floats), context_.get()));
  return std::make_unique<CudaMemory>(std::move(zeros), floats);
}

absl::StatusOr<std::unique_ptr<HostMemory>> CudaDevice::AllocateHost(size_t bytes) {
  if (!context_->BeginUnrepeated("AllocateHost")) return context_->status();
  return host_pool_.Allocate(bytes);
}

void CudaDevice::CopyToDevice(absl::Span<const float> from, DeviceMemory* to) {
  const auto n = static_cast<int64_t>(from.size());
  if (!context_->BeginUnrepeated("CopyToDevice", {{to, n}})) return;
  staging_.CopyToDevice(from.data(), CudaFloatBytes(n), to->data());
}

void CudaDevice::CopyIntegersToDevice(absl::Span<const int32_t> from, DeviceMemory* to) {
  const auto n = static_cast<int64_t>(from.size());
  if (!context_->BeginUnrepeated("CopyIntegersToDevice", {{to, n}})) return;
  staging_.CopyToDevice(from.data(), from.size() * sizeof(int32_t), to->data());
}

absl::Status CudaDevice::CopyToHost(const DeviceMemory& from, absl::Span<float> to) {
  const auto n = static_cast<int64_t>(to.size());
  if (context_->BeginUnrepeated("CopyToHost", {{&from, n}})) {
    staging_.CopyToHost(from.data(), CudaFloatBytes(n), to.data());
  }
  return context_->status();
}

absl::Status CudaDevice::Synchronize() {
  if (context_->BeginUnrepeated("Synchronize")) context_->SynchronizeStreams();
  return context_->status();
}

// Events

absl::StatusOr<std::unique_ptr<DeviceEvent>> CudaDevice::NewEvent() {
  if (!context_->BeginUnrepeated("NewEvent")) return context_->status();
  return CudaEvent::Create(context_.get());
}

void CudaDevice::Record(DeviceEvent* event) {
  if (context_->Begin("Record")) Cuda(event)->Record(context_->compute());
}

void CudaDevice::WaitFor(const DeviceEvent& event) {
  if (context_->Begin("WaitFor")) Cuda(event).Delay(context_->compute());
}

bool CudaDevice::Passed(const DeviceEvent& event) {
  if (!context_->BeginUnrepeated("Passed")) return true;
  const cudaError_t result = cudaEventQuery(Cuda(event).handle());
  if (result == cudaErrorNotReady) return false;
  context_->Check("cudaEventQuery", result);
  return true;
}

absl::Status CudaDevice::Await(const DeviceEvent& event) {
  if (context_->BeginUnrepeated("Await")) {
    context_->Check("cudaEventSynchronize", cudaEventSynchronize(Cuda(event).handle()));
  }
  return context_->status();
}

double CudaDevice::MillisecondsBetween(const DeviceEvent& from, const DeviceEvent& to) {
  float milliseconds = 0;
  if (context_->BeginUnrepeated("MillisecondsBetween") && Cuda(from).recorded() &&
      Cuda(to).recorded()) {
    context_->Check("cudaEventElapsedTime",
                    cudaEventElapsedTime(&milliseconds, Cuda(from).handle(), Cuda(to).handle()));
  }
  return milliseconds;
}

// Between the device and the wire

absl::StatusOr<std::unique_ptr<GradientEncoder>> CudaDevice::NewGradientEncoder(
    const WireLayout& layout) {
  if (!context_->BeginUnrepeated("NewGradientEncoder")) return context_->status();
  return CudaGradientEncoder::Create(layout, &staging_, &encode_scratch_, context_.get());
}

absl::StatusOr<std::unique_ptr<ValueDecoder>> CudaDevice::NewValueDecoder(WireFormat format,
                                                                          int64_t elements) {
  if (!context_->BeginUnrepeated("NewValueDecoder")) return context_->status();
  return CudaValueDecoder::Create(format, elements, context_.get());
}

bool CudaDevice::EnoughBytes(size_t bytes, size_t needed) {
  if (bytes >= needed) return true;
  context_->Fail(
      context_->Error(absl::StrCat("expected ", needed, " bytes of the host, found ", bytes)));
  return false;
}

void CudaDevice::Download(const DeviceMemory& gradient, const DeviceMemory* gate,
                          GradientEncoder* encoder, absl::Span<uint8_t> to, DeviceEvent* done) {
  auto* const cuda = static_cast<CudaGradientEncoder*>(encoder);
  if (!context_->Begin("Download", {{&gradient, cuda->layout().num_elements}, {gate, 1}})) return;
  if (!EnoughBytes(to.size(), cuda->layout().bytes)) return;
  if (!context_->Order(context_->compute(), context_->download())) return;
  cuda->Encode(gradient.data(), gate == nullptr ? nullptr : gate->data(), to.data());
  if (context_->status().ok()) Cuda(done)->Record(context_->download());
}

void CudaDevice::Upload(absl::Span<const uint8_t> from, const DeviceEvent* after,
                        ValueDecoder* decoder, DeviceMemory* to, DeviceEvent* done) {
  auto* const cuda = static_cast<CudaValueDecoder*>(decoder);
  if (!context_->BeginUnrepeated("Upload", {{to, cuda->elements()}})) return;
  if (!EnoughBytes(from.size(), cuda->bytes())) return;
  const cudaStream_t upload = context_->upload();
  if (!(after == nullptr ? context_->Order(context_->compute(), upload)
                         : Cuda(*after).Delay(upload))) {
    return;
  }
  cuda->Decode(from.data(), to->data());
  if (context_->status().ok()) Cuda(done)->Record(upload);
}

void CudaDevice::Repeat(uint64_t key, absl::FunctionRef<void()> operations) {
  if (context_->BeginUnrepeated("Repeat")) graphs_.Repeat(key, operations);
}

absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int ordinal, Precision precision) {
  return CudaDevice::Create(ordinal, precision);
}

}  // namespace keelson
