// Moves gradients from a GPU to page-locked memory and values back, in their wire formats.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_WIRE_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_WIRE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/cuda/cuda_context.h"
#include "core/device/cuda/cuda_memory.h"
#include "core/device/cuda/cuda_staging.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/device.h"
#include "core/wire/wire_layout.h"

namespace keelson {

// All calls are made within an operation begun on the context, which must outlive the encoder.
class CudaGradientEncoder : public GradientEncoder {
 public:
  // `scratch` belongs to the encoders of the download stream together and must outlive them.
  // RESOURCE_EXHAUSTED: out of memory.
  static absl::StatusOr<std::unique_ptr<CudaGradientEncoder>> Create(const WireLayout& layout,
                                                                     CudaStaging* staging,
                                                                     CudaScratch* scratch,
                                                                     CudaContext* context);

  const WireLayout& layout() const { return layout_; }
  // Puts the work on the download stream: the kernels, then the copy. `gate` may be null; `to` is
  // page-locked and has as many bytes as the layout.
  void Encode(const float* gradient, const float* gate, uint8_t* to);

 private:
  CudaGradientEncoder(const WireLayout& layout, CudaScratch* scratch, CudaContext* context)
      : layout_(layout), scratch_(scratch), context_(context) {}
  absl::Status Allocate(CudaStaging* staging);
  bool LaunchEncode(const float* gradient, const float* gate);

  const WireLayout layout_;
  CudaScratch* const scratch_;
  CudaContext* const context_;
  CudaBuffer tiles_;
  CudaBuffer blocks_;
  cuda::WireTables tables_ = {};
  CudaBuffer residual_;
  CudaBuffer encoded_;
};

class CudaValueDecoder : public ValueDecoder {
 public:
  // `format` is elementwise. RESOURCE_EXHAUSTED: out of memory.
  static absl::StatusOr<std::unique_ptr<CudaValueDecoder>> Create(WireFormat format,
                                                                  int64_t elements,
                                                                  CudaContext* context);

  int64_t elements() const { return elements_; }
  size_t bytes() const { return EncodedBytes(format_, elements_); }
  // Puts the work on the upload stream: the copy, then the kernel. `from` is page-locked.
  void Decode(const uint8_t* from, float* to);

 private:
  CudaValueDecoder(WireFormat format, int64_t elements, CudaContext* context)
      : format_(format), elements_(elements), context_(context) {}

  const WireFormat format_;
  const int64_t elements_;
  CudaContext* const context_;
  CudaBuffer encoded_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_WIRE_H_
