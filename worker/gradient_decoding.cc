#include "worker/gradient_decoding.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "core/wire/value_codec.h"

namespace keelson {
namespace {

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

void DecodeInt8(const uint8_t* bytes, absl::Span<float> elements) {
  constexpr size_t kGroup = kInt8GroupElements;
  for (size_t first = 0; first < elements.size(); first += kGroup) {
    const absl::Span<float> group = elements.subspan(first, kGroup);
    const float scale = Load<float>(bytes);
    DecodeInt8Group(scale, bytes + sizeof(scale), group);
    bytes += sizeof(scale) + group.size();
  }
}

void DecodeTopK(const uint8_t* bytes, absl::Span<float> elements) {
  std::fill(elements.begin(), elements.end(), 0.0f);
  const auto count = Load<uint32_t>(bytes);
  const uint8_t* const positions = bytes + sizeof(count);
  const uint8_t* const values = positions + count * sizeof(uint32_t);
  for (uint32_t i = 0; i < count; ++i) {
    elements.at(Load<uint32_t>(positions + i * sizeof(uint32_t))) =
        Load<float>(values + i * sizeof(float));
  }
}

}  // namespace

void DecodeGradient(const WireLayout& layout, const uint8_t* bytes, std::vector<float>* elements) {
  elements->resize(layout.num_elements);
  for (const WireBlock& block : layout.blocks) {
    const uint8_t* const from = bytes + block.offset;
    const absl::Span<float> to =
        absl::MakeSpan(*elements).subspan(block.first_element, block.num_elements);
    switch (layout.format) {
      case WireFormat::kInt8:
        DecodeInt8(from, to);
        break;
      case WireFormat::kTopK:
        DecodeTopK(from, to);
        break;
      default:
        DecodeElements(layout.format, from, to);
    }
  }
}

}  // namespace keelson
