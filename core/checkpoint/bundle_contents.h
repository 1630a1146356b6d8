// The content of a bundle's index: its tensors, and the positions of their bytes.
#ifndef KEELSON_CORE_CHECKPOINT_BUNDLE_CONTENTS_H_
#define KEELSON_CORE_CHECKPOINT_BUNDLE_CONTENTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/index_table.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/shape.h"

namespace keelson {

// Key of the header's record; the first of every index.
inline constexpr char kHeaderKey[] = "";

// A run of bytes in a data file, of the size that follows from its shape: a whole tensor or a
// slice.
struct StoredSlice {
  TensorSliceSpec position;  // resolved
  size_t data_shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t masked_crc = 0;
};

struct StoredTensor {
  std::string name;
  BundleDtype dtype;
  Shape shape;
  // Disjoint slices that cover the tensor; a single one if it is stored whole.
  std::vector<StoredSlice> slices;
};

struct BundleContents {
  std::map<std::string, StoredTensor, std::less<>> tensors;
  // Size of each data file; 0 for one that holds nothing (and which TensorFlow does not write).
  std::vector<uint64_t> data_sizes;
};

// INVALID_ARGUMENT, naming the tensor: no header, a record that is none, a shape, slice, size or
// data file number that cannot be, or bytes that belong to two tensors. UNIMPLEMENTED: a big-endian
// bundle, or one for newer readers.
absl::StatusOr<BundleContents> ParseBundleContents(const IndexTable& index);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_BUNDLE_CONTENTS_H_
