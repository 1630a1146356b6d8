// The number of elements of a shape that a file claims.
#ifndef KEELSON_CORE_TENSOR_FILES_ELEMENT_COUNT_H_
#define KEELSON_CORE_TENSOR_FILES_ELEMENT_COUNT_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace keelson {

// The product; nothing when it, or the product of the extents that are not 0, is above 2^58, so
// that the number of bytes fits in 63 bits for every type of elements. All extents are >= 0.
inline std::optional<int64_t> ElementCount(absl::Span<const int64_t> dims) {
  constexpr int64_t kLimit = int64_t{1} << 58;
  int64_t product = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim == 0) {
      empty = true;
    } else if (product > kLimit / dim) {
      return std::nullopt;
    } else {
      product *= dim;
    }
  }
  return empty ? 0 : product;
}

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_ELEMENT_COUNT_H_
