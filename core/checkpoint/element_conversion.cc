#include "core/checkpoint/element_conversion.h"

#include <cstdint>
#include <cstring>

#include "core/wire/value_codec.h"

namespace keelson {
namespace {

template <typename T>
void Convert(const char* from, absl::Span<float> to) {
  for (float& element : to) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    element = static_cast<float>(value);
    from += sizeof(value);
  }
}

void ConvertBool(const char* from, absl::Span<float> to) {
  for (float& element : to) element = *from++ == 0 ? 0.0f : 1.0f;
}

void Decode(WireFormat format, const char* from, absl::Span<float> to) {
  DecodeElements(format, reinterpret_cast<const uint8_t*>(from), to);
}

}  // namespace

bool IsNumeric(BundleDtype dtype) {
  switch (dtype) {
    case BundleDtype::kFloat32:
    case BundleDtype::kFloat64:
    case BundleDtype::kFloat16:
    case BundleDtype::kBfloat16:
    case BundleDtype::kInt8:
    case BundleDtype::kUint8:
    case BundleDtype::kInt16:
    case BundleDtype::kUint16:
    case BundleDtype::kInt32:
    case BundleDtype::kUint32:
    case BundleDtype::kInt64:
    case BundleDtype::kUint64:
    case BundleDtype::kBool:
      return true;
    default:
      return false;
  }
}

void ConvertToFloat(BundleDtype dtype, const char* from, absl::Span<float> to) {
  switch (dtype) {
    case BundleDtype::kFloat32:
      return Decode(WireFormat::kFloat32, from, to);
    case BundleDtype::kFloat16:
      return Decode(WireFormat::kFloat16, from, to);
    case BundleDtype::kBfloat16:
      return Decode(WireFormat::kBfloat16, from, to);
    case BundleDtype::kFloat64:
      return Convert<double>(from, to);
    case BundleDtype::kInt8:
      return Convert<int8_t>(from, to);
    case BundleDtype::kUint8:
      return Convert<uint8_t>(from, to);
    case BundleDtype::kInt16:
      return Convert<int16_t>(from, to);
    case BundleDtype::kUint16:
      return Convert<uint16_t>(from, to);
    case BundleDtype::kInt32:
      return Convert<int32_t>(from, to);
    case BundleDtype::kUint32:
      return Convert<uint32_t>(from, to);
    case BundleDtype::kInt64:
      return Convert<int64_t>(from, to);
    case BundleDtype::kUint64:
      return Convert<uint64_t>(from, to);
    case BundleDtype::kBool:
      return ConvertBool(from, to);
    default:  // not numeric
      return;
  }
}

}  // namespace keelson
