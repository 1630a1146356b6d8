#include "core/device/cpu/wire_transfer.h"

#include <cstring>

#include "core/wire/value_codec.h"

namespace keelson {

CpuGradientEncoder::CpuGradientEncoder(const WireLayout& layout)
    : layout_(layout), residual_(IsElementwise(layout.format) ? 0 : layout.num_elements) {}

void CpuGradientEncoder::Encode(const float* gradient, uint8_t* to) {
  for (const WireBlock& block : layout_.blocks) {
    const size_t first = block.first_element;
    const size_t size = block.num_elements;
    const absl::Span<const float> from(gradient + first, size);
    uint8_t* const bytes = to + block.offset;
    if (IsElementwise(layout_.format)) {
      EncodeElements(layout_.format, from, bytes);
    } else if (layout_.format == WireFormat::kInt8) {
      EncodeInt8(from, residual_.span().subspan(first, size), bytes);
    } else {
      top_k_.clear();
      EncodeTopK(from, block.top_k_count, residual_.span().subspan(first, size), &top_k_);
      std::memcpy(bytes, top_k_.data(), top_k_.size());
    }
  }
}

void CpuValueDecoder::Decode(const uint8_t* from, float* to) const {
  DecodeElements(format_, from, absl::MakeSpan(to, elements_));
}

}  // namespace keelson
