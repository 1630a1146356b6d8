// Writes the fields of a protobuf message into memory that is large enough, as protobuf does:
// fields with their default value are left out.
#ifndef KEELSON_CORE_WIRE_MESSAGE_WRITER_H_
#define KEELSON_CORE_WIRE_MESSAGE_WRITER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "core/base/varint.h"

namespace keelson {

// Bytes that each call needs at most, with a field number of 1 to 15, which makes a tag one byte:
// 11 for Varint, 9 for Fixed64, 5 for Float, 2 for a message, 11 for Bytes. Greater ones take more.
class MessageWriter {
 public:
  explicit MessageWriter(void* to) : next_(static_cast<uint8_t*>(to)) {}

  uint8_t* position() const { return next_; }

  void Varint(int field, uint64_t value) {
    if (value == 0) return;
    Tag(field, 0);
    PutVarint(value);
  }

  void Fixed64(int field, uint64_t value) {
    static_assert(std::endian::native == std::endian::little);
    if (value == 0) return;
    Tag(field, 1);
    std::memcpy(next_, &value, sizeof(value));
    next_ += sizeof(value);
  }

  // -0 is not the default.
  void Float(int field, float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    if (bits == 0) return;
    Tag(field, 5);
    std::memcpy(next_, &bits, sizeof(bits));
    next_ += sizeof(bits);
  }

  // A message of less than 128 bytes, in order: BeginMessage, its fields, EndMessage with what
  // BeginMessage returned.
  uint8_t* BeginMessage(int field) {
    Tag(field, 2);
    return ++next_;
  }
  void EndMessage(uint8_t* begin) { begin[-1] = static_cast<uint8_t>(next_ - begin); }

  void PackedVarints(int field, absl::Span<const uint64_t> values) {
    if (values.empty()) return;
    size_t size = 0;
    for (const uint64_t value : values) size += VarintBytes(value);
    BeginBytes(field, size);
    for (const uint64_t value : values) PutVarint(value);
  }

  // `size` bytes follow.
  void BeginBytes(int field, size_t size) {
    Tag(field, 2);
    PutVarint(size);
  }

 private:
  void Tag(int field, int wire_type) { PutVarint(static_cast<uint64_t>(field << 3 | wire_type)); }

  void PutVarint(uint64_t value) { next_ = keelson::PutVarint(value, next_); }

  uint8_t* next_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_MESSAGE_WRITER_H_
