// Keys whose order as bytes is the order of the values, and the keys of slices made of them.
// Format: tensorflow/core/lib/strings/ordered_code.h,
// tensorflow/core/util/saved_tensor_slice_util.h.
#ifndef KEELSON_CORE_CHECKPOINT_ORDERED_CODE_H_
#define KEELSON_CORE_CHECKPOINT_ORDERED_CODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/checkpoint/tensor_slice.h"

namespace keelson {

// Number of bytes, then the bytes, most significant first: 0 -> 00, 10 -> 01 0a.
void AppendOrderedUnsigned(uint64_t value, std::string* out);

// 1 to 10 bytes; the count is in the leading bits: 64 -> c0 40, -1 -> 7f.
void AppendOrderedSigned(int64_t value, std::string* out);

// 00 and ff escaped as 00 ff and ff 00, then the end mark 00 01.
void AppendOrderedString(absl::string_view value, std::string* out);

// Key of a slice of tensor `name` in a bundle's index. Begins with 00, hence sorts before names.
std::string EncodeSliceKey(absl::string_view name, const TensorSliceSpec& slice);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_ORDERED_CODE_H_
