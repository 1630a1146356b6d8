#include "core/wire/wire_format.h"

namespace keelson {

absl::string_view WireFormatName(WireFormat format) {
  switch (format) {
    case WireFormat::kFloat32:
      return "float32";
    case WireFormat::kFloat16:
      return "float16";
    case WireFormat::kBfloat16:
      return "bfloat16";
    case WireFormat::kInt8:
      return "int8";
    case WireFormat::kTopK:
      return "top_k";
  }
  return "unknown";
}

}  // namespace keelson
