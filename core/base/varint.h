// Base-128 variable-length integers, least significant group first, as in leveldb and protobuf.
#ifndef KEELSON_CORE_BASE_VARINT_H_
#define KEELSON_CORE_BASE_VARINT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace keelson {

// How many bytes a number takes: 1 to 10.
constexpr size_t VarintBytes(uint64_t value) { return (std::bit_width(value | 1) + 6) / 7; }

// Returns the end of what it wrote.
inline uint8_t* PutVarint(uint64_t value, uint8_t* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<uint8_t>(value | 0x80);
  *to++ = static_cast<uint8_t>(value);
  return to;
}

inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Takes one off the front of `in`. False: `in` ends within it, or it has more than 64 bits.
inline bool ConsumeVarint(absl::string_view* in, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_VARINT_H_
