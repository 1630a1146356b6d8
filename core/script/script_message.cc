#include "core/script/script_message.h"

#include <bit>
#include <cstring>

namespace keelson {

static_assert(std::endian::native == std::endian::little, "the fields are copied as they are");

ScriptMessageWriter& ScriptMessageWriter::Number(uint64_t value) {
  message_.body.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return *this;
}

ScriptMessageWriter& ScriptMessageWriter::Text(absl::string_view text) {
  message_.body.append(text.data(), text.size());
  return *this;
}

uint64_t ScriptMessageReader::Number() {
  uint64_t value = 0;
  if (rest_.size() < sizeof(value)) {
    ok_ = false;
    return 0;
  }
  std::memcpy(&value, rest_.data(), sizeof(value));
  rest_.remove_prefix(sizeof(value));
  return value;
}

double ScriptMessageReader::Real() { return std::bit_cast<double>(Number()); }

absl::string_view ScriptMessageReader::Text() {
  const absl::string_view text = rest_;
  rest_.remove_prefix(rest_.size());
  return text;
}

}  // namespace keelson
