// The formats in which the elements of a block are written in a payload, little-endian.
//
//   float32, float16, bfloat16   n elements
//   int8                         groups of 1024 elements (the last one the rest): a float32 scale,
//                                then one signed byte per element; element = scale * byte
//   top-k                        uint32 count, `count` uint32 positions within the block,
//                                ascending, `count` float32 elements; all others are 0
//
// A gradient may come in any of them, values go out in the first three. Rows of tables have all but
// top-k, in both directions (row_codec.h).
#ifndef KEELSON_CORE_WIRE_WIRE_FORMAT_H_
#define KEELSON_CORE_WIRE_WIRE_FORMAT_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace keelson {

// The numbers of v1::WireFormat.
enum class WireFormat : uint8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kInt8 = 3,
  kTopK = 4,
};
inline constexpr int kNumWireFormats = 5;

inline constexpr int64_t kInt8GroupElements = 1024;

// "float32", "float16", "bfloat16", "int8", "top_k".
absl::string_view WireFormatName(WireFormat format);

// Whether every element has bytes of its own: float32, float16, bfloat16.
constexpr bool IsElementwise(WireFormat format) { return format <= WireFormat::kBfloat16; }

// Bytes of one element of an elementwise format.
constexpr size_t ElementBytes(WireFormat format) { return format == WireFormat::kFloat32 ? 4 : 2; }

// Bytes of a block of `elements` elements. Not for kTopK.
constexpr size_t EncodedBytes(WireFormat format, int64_t elements) {
  if (IsElementwise(format)) return elements * ElementBytes(format);
  const size_t groups = (elements + kInt8GroupElements - 1) / kInt8GroupElements;
  return elements + groups * sizeof(float);
}

// Bytes of a top-k block that keeps `count` elements.
constexpr size_t TopKBytes(int64_t count) {
  return sizeof(uint32_t) + count * (sizeof(uint32_t) + sizeof(float));
}

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_WIRE_FORMAT_H_
