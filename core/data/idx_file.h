// The IDX format of the MNIST family: a magic number, one big-endian 32-bit extent per dimension,
// then the elements, here unsigned bytes. Source: Y. LeCun, "The MNIST database", file formats.
#ifndef KEELSON_CORE_DATA_IDX_FILE_H_
#define KEELSON_CORE_DATA_IDX_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace keelson {

struct IdxArray {
  std::vector<int64_t> dims;
  std::vector<uint8_t> values;
};

// Reads an array with `rank` dimensions; `path` may end in ".gz" or ".zst". Memory grows with what
// was read, never by what a header claims. Errors name the file, what was expected and what was
// found:
//   INVALID_ARGUMENT: another magic number.
//   DATA_LOSS: more than kMaxUnpackedBytes in a packed file, truncated, trailing bytes, extents
//     that no file of this size can hold, or a damaged gzip or zstd stream.
absl::StatusOr<IdxArray> ReadIdxFile(const std::string& path, int rank);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_IDX_FILE_H_
