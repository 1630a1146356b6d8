// Encodes and decodes host arrays with core/wire/value_codec.h.
#ifndef KEELSON_CORE_DEVICE_CPU_WIRE_TRANSFER_H_
#define KEELSON_CORE_DEVICE_CPU_WIRE_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/tensor/aligned_buffer.h"
#include "core/wire/wire_layout.h"

namespace keelson {

class CpuGradientEncoder : public GradientEncoder {
 public:
  // Throws std::bad_alloc.
  explicit CpuGradientEncoder(const WireLayout& layout);

  const WireLayout& layout() const { return layout_; }
  // `gradient`: the layout's elements; `to`: its bytes, those of the padding are left as they are.
  void Encode(const float* gradient, uint8_t* to);

 private:
  const WireLayout layout_;
  AlignedBuffer residual_;  // of formats that are not elementwise
  std::string top_k_;
};

class CpuValueDecoder : public ValueDecoder {
 public:
  // `format` is elementwise.
  CpuValueDecoder(WireFormat format, int64_t elements) : format_(format), elements_(elements) {}

  int64_t elements() const { return elements_; }
  size_t bytes() const { return EncodedBytes(format_, elements_); }
  void Decode(const uint8_t* from, float* to) const;

 private:
  const WireFormat format_;
  const int64_t elements_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_WIRE_TRANSFER_H_
