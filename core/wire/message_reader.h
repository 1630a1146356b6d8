// Reads the fields of one protobuf message, one after another, without building anything.
// Format: protobuf's "Encoding" page (varint, 64-bit, length-delimited and 32-bit fields).
#ifndef KEELSON_CORE_WIRE_MESSAGE_READER_H_
#define KEELSON_CORE_WIRE_MESSAGE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/wire/byte_rope.h"
#include "core/wire/wire_format.h"

namespace keelson {

// The first error of a message; shared by its reader and those of the messages within.
struct ReadError {
  const char* field = nullptr;    // the name given to the reading call; null: a tag, or unknown
  const char* within = nullptr;   // the message that has the field; null: the outermost
  uint32_t number = 0;            // the field's; 0: a tag
  const char* problem = nullptr;  // null: none

  bool ok() const { return problem == nullptr; }
  // INVALID_ARGUMENT: "malformed `message`: field ranges.format: ...".
  absl::Status ToStatus(const char* message) const;
};

// Calls Next, then exactly one of the reading calls (or Skip) according to field(), and so on.
// After an error Next is false and the reading calls do nothing. Fields may lie across fragments;
// contiguous contents are read in place.
class MessageReader {
 public:
  // Reads the whole rest of `source`, which moves ahead by whole fragments: consumed() says how far
  // the reader got. Both outlive the reader.
  MessageReader(ByteCursor* source, ReadError* error)
      : source_(source), total_(source->remaining()), error_(error) {}

  // Moves to the next field; false at the end and after an error.
  bool Next();
  uint32_t field() const { return field_; }

  // A value that does not fit, or another wire type than the field's, is an error.
  void ReadUint32(const char* name, uint32_t* value);
  void ReadUint64(const char* name, uint64_t* value);
  void ReadInt64(const char* name, int64_t* value);
  void ReadBool(const char* name, bool* value);
  void ReadFixed64(const char* name, uint64_t* value);
  void ReadFloat(const char* name, float* value);
  // An enum without negative values.
  void ReadEnum(const char* name, int* value);
  void ReadFormat(const char* name, WireFormat* value);
  // An enum whose values are those below `values`.
  template <typename Enum>
  void ReadKnown(const char* name, int values, Enum* value) {
    int number = static_cast<int>(*value);
    ReadEnum(name, &number);
    if (number >= values) return Fail(name, "no such value");
    *value = static_cast<Enum>(number);
  }
  // Packed or not. Reads no more when there are more than `most`.
  void AppendUint64s(const char* name, size_t most, std::vector<uint64_t>* values);
  // A message within this one, to be read to its end before this reader goes on.
  MessageReader Message(const char* name);
  // Consumes a bytes field's tag and size; the bytes must be all that is left.
  size_t TakeRest(const char* name);
  // Skips an unknown field. Groups, which proto3 does not have, are an error.
  void Skip();

  size_t consumed() const { return total_ - remaining(); }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  MessageReader(const char* name, absl::Span<const uint8_t> bytes, ReadError* error)
      : name_(name),
        next_(bytes.data()),
        end_(bytes.data() + bytes.size()),
        total_(bytes.size()),
        error_(error) {}

  size_t remaining() const {
    return end_ - next_ + (source_ == nullptr ? 0 : source_->remaining());
  }
  void Fail(const char* name, const char* problem);
  bool Expect(const char* name, WireType type);
  bool Refill();
  bool Varint(const char* name, uint64_t* value);
  bool LongVarint(const char* name, uint64_t* value);
  bool Bytes(const char* name, void* to, size_t size);
  bool SkipBytes(const char* name, uint64_t size);
  // A length-delimited field's contents in one piece, copied to scratch_ if necessary.
  absl::Span<const uint8_t> Contents(const char* name);

  const char* name_ = nullptr;    // null: the outermost message
  ByteCursor* source_ = nullptr;  // null: [next_, end_) is all
  const uint8_t* next_ = nullptr;
  const uint8_t* end_ = nullptr;
  size_t total_ = 0;
  ReadError* error_;
  uint32_t field_ = 0;
  uint32_t type_ = 0;
  std::string scratch_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_MESSAGE_READER_H_
