#include "core/device/cuda/cuda_wire.h"

#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/device/cuda/kernels/wire_tables.h"

namespace keelson {
namespace {

template <typename T>
absl::StatusOr<CudaBuffer> CopyOf(const std::vector<T>& values, CudaStaging* staging,
                                  CudaContext* context) {
  const size_t bytes = values.size() * sizeof(T);
  ASSIGN_OR_RETURN(CudaBuffer buffer, AllocateCudaBuffer(bytes, context));
  staging->CopyToDevice(values.data(), bytes, buffer.get());
  return buffer;
}

template <typename T>
T* As(const CudaBuffer& buffer) {
  return reinterpret_cast<T*>(buffer.get());
}

bool HasErrorFeedback(WireFormat format) { return !IsElementwise(format); }

}  // namespace

absl::StatusOr<std::unique_ptr<CudaGradientEncoder>> CudaGradientEncoder::Create(
    const WireLayout& layout, CudaStaging* staging, CudaScratch* scratch, CudaContext* context) {
  std::unique_ptr<CudaGradientEncoder> encoder(new CudaGradientEncoder(layout, scratch, context));
  RETURN_IF_ERROR(encoder->Allocate(staging));
  return encoder;
}

absl::Status CudaGradientEncoder::Allocate(CudaStaging* staging) {
  if (layout_.format == WireFormat::kFloat32) return absl::OkStatus();
  const cuda::WireTableContents contents = cuda::MakeWireTables(layout_);
  ASSIGN_OR_RETURN(tiles_, CopyOf(contents.tiles, staging, context_));
  ASSIGN_OR_RETURN(blocks_, CopyOf(contents.blocks, staging, context_));
  tables_ = {As<cuda::WireTile>(tiles_), static_cast<int64_t>(contents.tiles.size()),
             As<cuda::WireTopKBlock>(blocks_), static_cast<int64_t>(contents.blocks.size())};
  ASSIGN_OR_RETURN(encoded_, AllocateCudaZeros(layout_.bytes, context_));
  if (HasErrorFeedback(layout_.format)) {
    ASSIGN_OR_RETURN(residual_, AllocateCudaZeros(CudaFloatBytes(layout_.num_elements), context_));
  }
  if (layout_.format == WireFormat::kTopK) {
    RETURN_IF_ERROR(scratch_->Reserve(cuda::EncodeTopKScratch(tables_)));
  }
  // From here on every stream may use the tables, too.
  context_->SynchronizeStreams();
  return context_->status();
}

bool CudaGradientEncoder::LaunchEncode(const float* gradient, const float* gate) {
  const cudaStream_t stream = context_->download();
  uint8_t* const to = encoded_.get();
  switch (layout_.format) {
    case WireFormat::kFloat32:
      return true;
    case WireFormat::kFloat16:
      return context_->Check("EncodeFloat16Kernel",
                             cuda::LaunchEncodeFloat16(stream, tables_, gradient, to));
    case WireFormat::kBfloat16:
      return context_->Check("EncodeBfloat16Kernel",
                             cuda::LaunchEncodeBfloat16(stream, tables_, gradient, to));
    case WireFormat::kInt8:
      return context_->Check(
          "EncodeInt8Kernel",
          cuda::LaunchEncodeInt8(stream, tables_, gradient, gate, As<float>(residual_), to));
    case WireFormat::kTopK: {
      uint8_t* const scratch = scratch_->Get<uint8_t>(cuda::EncodeTopKScratch(tables_));
      return scratch != nullptr &&
             context_->Check("EncodeTopKKernel",
                             cuda::LaunchEncodeTopK(stream, tables_, gradient, gate, scratch,
                                                    As<float>(residual_), to));
    }
  }
  return false;
}

void CudaGradientEncoder::Encode(const float* gradient, const float* gate, uint8_t* to) {
  if (layout_.bytes == 0) return;
  if (!LaunchEncode(gradient, gate)) return;
  const void* const from =
      layout_.format == WireFormat::kFloat32 ? static_cast<const void*>(gradient) : encoded_.get();
  context_->Check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, layout_.bytes,
                                                     cudaMemcpyDeviceToHost, context_->download()));
}

absl::StatusOr<std::unique_ptr<CudaValueDecoder>> CudaValueDecoder::Create(WireFormat format,
                                                                           int64_t elements,
                                                                           CudaContext* context) {
  std::unique_ptr<CudaValueDecoder> decoder(new CudaValueDecoder(format, elements, context));
  if (format == WireFormat::kFloat32) return decoder;
  ASSIGN_OR_RETURN(decoder->encoded_, AllocateCudaBuffer(decoder->bytes(), context));
  return decoder;
}

void CudaValueDecoder::Decode(const uint8_t* from, float* to) {
  if (elements_ == 0) return;
  const cudaStream_t stream = context_->upload();
  uint8_t* const copy =
      format_ == WireFormat::kFloat32 ? reinterpret_cast<uint8_t*>(to) : encoded_.get();
  if (!context_->Check("cudaMemcpyAsync",
                       cudaMemcpyAsync(copy, from, bytes(), cudaMemcpyHostToDevice, stream))) {
    return;
  }
  if (format_ == WireFormat::kFloat16) {
    context_->Check("DecodeFloat16Kernel", cuda::LaunchDecodeFloat16(stream, elements_, copy, to));
  } else if (format_ == WireFormat::kBfloat16) {
    context_->Check("DecodeBfloat16Kernel",
                    cuda::LaunchDecodeBfloat16(stream, elements_, copy, to));
  }
}

}  // namespace keelson
