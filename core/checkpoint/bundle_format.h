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
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kVariant = 21,  // may hold anything
  kUint32 = 22,
  kUint64 = 23,
  kFloat8E5m2 = 24,
  kFloat8E4m3fn = 25,
  kFloat8E4m3fnuz = 26,
  kFloat8E4m3b11fnuz = 27,
  kFloat8E5m2fnuz = 28,
  // Types of less than a byte take one each.
  kInt4 = 29,
  kUint4 = 30,
  kInt2 = 31,
  kUint2 = 32,
};

// "float32"; "dtype 99" for a number that is not listed above.
std::string DtypeName(BundleDtype dtype);
// Bytes of one element; 0 where it has no fixed size or is not listed.
int64_t DtypeSize(BundleDtype dtype);
// The checksum of a slice covers its bytes as they lie in the file: true of all types but strings
// and variants.
bool ChecksumIsOfStoredBytes(BundleDtype dtype);

// "model.ckpt-100", 0, 3 -> "model.ckpt-100.data-00000-of-00003"
std::string DataPath(absl::string_view prefix, size_t data_shard, size_t num_data_shards);
// "model.ckpt-100" -> "model.ckpt-100.index"
std::string IndexPath(absl::string_view prefix);
// The name of a snapshot's file until the chief of this term commits it, which gives it the name
// `path`: "PATH.tempstate7-c0ffee". `cut`: PrepareCutRequest.cut_id
std::string PendingPath(absl::string_view path, uint64_t term, uint64_t cut);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_BUNDLE_FORMAT_H_
