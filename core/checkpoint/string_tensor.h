// The format in which a bundle stores strings: their lengths as varints, the masked CRC-32C of the
// lengths, then the strings. The checksums run over the lengths as little-endian integers of 4
// bytes (8 where needed), not over their varints. Format:
// tensorflow/core/util/tensor_bundle/tensor_bundle.cc, WriteStringTensor.
#ifndef KEELSON_CORE_CHECKPOINT_STRING_TENSOR_H_
#define KEELSON_CORE_CHECKPOINT_STRING_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

// The bytes before those of a single string.
struct StringTensorPrefix {
  std::string bytes;
  // The entry's checksum so far, to be extended by the string; unmasked.
  uint32_t crc;
};
StringTensorPrefix EncodeStringTensorPrefix(uint64_t string_size);

struct DecodedStrings {
  std::vector<std::string> strings;
  uint32_t crc;  // of the entry, unmasked
};
// The strings of an entry. DATA_LOSS: lengths that do not add up to the entry's size, or whose
// checksum is wrong.
absl::StatusOr<DecodedStrings> DecodeStringTensor(absl::string_view entry, int64_t count);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_STRING_TENSOR_H_
