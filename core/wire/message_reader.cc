#include "core/wire/message_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kTruncated[] = "the message ends within it";
constexpr char kOutOfRange[] = "out of range";
constexpr char kWrongType[] = "wrong wire type";

}  // namespace

absl::Status ReadError::ToStatus(const char* message) const {
  if (ok()) return absl::OkStatus();
  if (field != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed ", message, ": field ", field, ": ", problem));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "malformed ", message, ": ", within == nullptr ? "" : absl::StrCat("field ", within, ": "),
      number == 0 ? "a field's tag" : absl::StrCat("unknown field ", number), ": ", problem));
}

bool MessageReader::Next() {
  if (!error_->ok() || remaining() == 0) return false;
  field_ = 0;
  uint64_t tag;
  if (!Varint(nullptr, &tag)) return false;
  if (tag > std::numeric_limits<uint32_t>::max() || tag >> 3 == 0) {
    Fail(nullptr, kOutOfRange);
    return false;
  }
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<uint32_t>(tag & 7);
  return true;
}

void MessageReader::ReadUint32(const char* name, uint32_t* value) {
  uint64_t wide;
  if (!Expect(name, kVarint) || !Varint(name, &wide)) return;
  if (wide > std::numeric_limits<uint32_t>::max()) return Fail(name, kOutOfRange);
  *value = static_cast<uint32_t>(wide);
}

void MessageReader::ReadUint64(const char* name, uint64_t* value) {
  if (Expect(name, kVarint)) Varint(name, value);
}

void MessageReader::ReadInt64(const char* name, int64_t* value) {
  uint64_t bits;
  if (Expect(name, kVarint) && Varint(name, &bits)) *value = static_cast<int64_t>(bits);
}

void MessageReader::ReadBool(const char* name, bool* value) {
  uint64_t number;
  if (Expect(name, kVarint) && Varint(name, &number)) *value = number != 0;
}

void MessageReader::ReadFixed64(const char* name, uint64_t* value) {
  if (Expect(name, kFixed64)) Bytes(name, value, sizeof(*value));
}

void MessageReader::ReadFloat(const char* name, float* value) {
  if (Expect(name, kFixed32)) Bytes(name, value, sizeof(*value));
}

void MessageReader::ReadEnum(const char* name, int* value) {
  uint64_t number;
  if (!Expect(name, kVarint) || !Varint(name, &number)) return;
  if (number > static_cast<uint64_t>(std::numeric_limits<int>::max())) {
    return Fail(name, kOutOfRange);
  }
  *value = static_cast<int>(number);
}

void MessageReader::ReadFormat(const char* name, WireFormat* value) {
  uint64_t number;
  if (!Expect(name, kVarint) || !Varint(name, &number)) return;
  if (number >= kNumWireFormats) return Fail(name, "no such wire format");
  *value = static_cast<WireFormat>(number);
}

void MessageReader::AppendUint64s(const char* name, size_t most, std::vector<uint64_t>* values) {
  uint64_t value;
  if (type_ != kBytes) {
    if (Expect(name, kVarint) && Varint(name, &value)) values->push_back(value);
    return;
  }
  MessageReader packed(name, Contents(name), error_);
  while (values->size() <= most && packed.remaining() > 0 && packed.Varint(name, &value)) {
    values->push_back(value);
  }
}

MessageReader MessageReader::Message(const char* name) {
  const absl::Span<const uint8_t> contents =
      Expect(name, kBytes) ? Contents(name) : absl::Span<const uint8_t>();
  return MessageReader(name, contents, error_);
}

size_t MessageReader::TakeRest(const char* name) {
  uint64_t size;
  if (!Expect(name, kBytes) || !Varint(name, &size)) return 0;
  if (size > remaining()) Fail(name, kTruncated);
  if (size < remaining()) Fail(name, "the message goes on after it");
  return error_->ok() ? size : 0;
}

void MessageReader::Skip() {
  uint64_t value;
  switch (type_) {
    case kVarint:
      Varint(nullptr, &value);
      return;
    case kFixed64:
      SkipBytes(nullptr, 8);
      return;
    case kBytes:
      if (Varint(nullptr, &value)) SkipBytes(nullptr, value);
      return;
    case kFixed32:
      SkipBytes(nullptr, 4);
      return;
    default:
      Fail(nullptr, kWrongType);
  }
}

void MessageReader::Fail(const char* name, const char* problem) {
  if (error_->ok()) *error_ = {name, name_, field_, problem};
}

bool MessageReader::Expect(const char* name, WireType type) {
  if (type_ == type) return true;
  Fail(name, kWrongType);
  return false;
}

bool MessageReader::Refill() {
  if (source_ == nullptr || source_->remaining() == 0) return false;
  const absl::Span<const uint8_t> piece = source_->Next(source_->remaining());
  next_ = piece.data();
  end_ = next_ + piece.size();
  return true;
}

bool MessageReader::Varint(const char* name, uint64_t* value) {
  if (next_ == end_ || *next_ >= 0x80) return LongVarint(name, value);
  *value = *next_++;
  return true;
}

bool MessageReader::LongVarint(const char* name, uint64_t* value) {
  uint64_t bits = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (next_ == end_ && !Refill()) {
      Fail(name, kTruncated);
      return false;
    }
    const uint64_t byte = *next_++;
    if (shift == 63 && byte > 1) break;
    bits |= (byte & 0x7F) << shift;
    if (byte < 0x80) {
      *value = bits;
      return true;
    }
  }
  Fail(name, kOutOfRange);
  return false;
}

bool MessageReader::Bytes(const char* name, void* to, size_t size) {
  if (size > remaining()) {
    Fail(name, kTruncated);
    return false;
  }
  auto* out = static_cast<uint8_t*>(to);
  while (size > 0 && (next_ != end_ || Refill())) {
    const size_t piece = std::min<size_t>(size, end_ - next_);
    std::memcpy(out, next_, piece);
    next_ += piece;
    out += piece;
    size -= piece;
  }
  return true;
}

bool MessageReader::SkipBytes(const char* name, uint64_t size) {
  if (size > remaining()) {
    Fail(name, kTruncated);
    return false;
  }
  const size_t here = std::min<size_t>(size, end_ - next_);
  next_ += here;
  return size == here || source_->Skip(size - here);
}

absl::Span<const uint8_t> MessageReader::Contents(const char* name) {
  uint64_t size;
  if (!Varint(name, &size)) return {};
  if (size > remaining()) {
    Fail(name, kTruncated);
    return {};
  }
  if (next_ == end_) Refill();
  if (size <= static_cast<size_t>(end_ - next_)) {
    next_ += size;
    return {next_ - size, size};
  }
  scratch_.resize(size);
  Bytes(name, scratch_.data(), size);
  return {reinterpret_cast<const uint8_t*>(scratch_.data()), size};
}

}  // namespace keelson
