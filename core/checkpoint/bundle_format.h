// The definitions shared by writer and reader of a TensorBundle: element types and file names.
// Format: tensorflow/core/util/tensor_bundle/{naming,tensor_bundle}.h, framework/types.proto.
#ifndef KEELSON_CORE_CHECKPOINT_BUNDLE_FORMAT_H_
#define KEELSON_CORE_CHECKPOINT_BUNDLE_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace keelson {

// TensorFlow's numbers of element types. Others may occur in a file (see DtypeName).
enum class BundleDtype : int32_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kUint32 = 22,
  kUint64 = 23,
};

// "float32"; "dtype 21" for a number that is not listed above.
std::string DtypeName(BundleDtype dtype);
// Bytes of one element; 0 where it has no fixed size or is not listed.
int64_t DtypeSize(BundleDtype dtype);

// "model.ckpt-100", 0, 3 -> "model.ckpt-100.data-00000-of-00003"
std::string DataPath(absl::string_view prefix, size_t data_shard, size_t num_data_shards);
// "model.ckpt-100" -> "model.ckpt-100.index"
std::string IndexPath(absl::string_view prefix);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_BUNDLE_FORMAT_H_
