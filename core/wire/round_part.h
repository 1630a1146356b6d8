// v1::RoundPart, the answer to ReadRound, in its wire form: everything but the payload, which is
// the last field and is neither copied nor touched here. The bytes are what protobuf writes.
#ifndef KEELSON_CORE_WIRE_ROUND_PART_H_
#define KEELSON_CORE_WIRE_ROUND_PART_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/wire/byte_rope.h"

namespace keelson {

struct RoundPartHead {
  uint32_t blocks = 0;
  size_t payload_bytes = 0;
};

// The bytes that the payload of a block with so many elements has.
inline size_t RoundBlockBytes(int64_t elements) {
  return sizeof(double) + static_cast<size_t>(elements) * sizeof(float);
}

// The message up to its payload, which the caller appends.
std::string EncodeRoundPart(const RoundPartHead& head);

// Reads a message and leaves the cursor at its payload. INVALID_ARGUMENT, with the field: as
// DecodeBulkResponse.
absl::StatusOr<RoundPartHead> DecodeRoundPart(ByteCursor* cursor);

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_ROUND_PART_H_
