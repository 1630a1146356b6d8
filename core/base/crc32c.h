// CRC-32C (Castagnoli), as TensorFlow's files use it.
#ifndef KEELSON_CORE_BASE_CRC32C_H_
#define KEELSON_CORE_BASE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace keelson {

// The checksum of A+B, given `crc` = checksum of A (0 for an empty A) and `data` = B.
uint32_t Crc32cExtend(uint32_t crc, absl::string_view data);
inline uint32_t Crc32c(absl::string_view data) { return Crc32cExtend(0, data); }

// Masked form stored beside data: rotate right by 15, add 0xa282ead8. It keeps the checksum of
// a string that contains checksums well behaved (leveldb, util/crc32c.h).
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_CRC32C_H_
