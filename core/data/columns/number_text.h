// Reads numbers from text at the speed of the text.
#ifndef KEELSON_CORE_DATA_COLUMNS_NUMBER_TEXT_H_
#define KEELSON_CORE_DATA_COLUMNS_NUMBER_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace keelson {

inline bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Reads a whole number >= 0 from the front of [begin, end). Returns where it ends; null: there is
// none, or it has more than 64 bits. The byte at `end` may be read, and is no digit.
inline const char* ReadWhole(const char* begin, const char* end, uint64_t* value) {
  constexpr ptrdiff_t kSafeDigits = 19;  // of which any has 64 bits
  const char* at = begin;
  uint64_t number = 0;
  for (; IsDigit(*at) && at < end && at - begin < kSafeDigits; ++at) {
    number = number * 10 + static_cast<uint64_t>(*at - '0');
  }
  for (; at < end && IsDigit(*at); ++at) {
    if (__builtin_mul_overflow(number, uint64_t{10}, &number)) return nullptr;
    if (__builtin_add_overflow(number, static_cast<uint64_t>(*at - '0'), &number)) return nullptr;
  }
  *value = number;
  return at == begin ? nullptr : at;
}

// Reads a decimal number such as "1", "-0.25", "+1" and "1e-3" from the front of [begin, end).
// Returns where it ends; null: there is none, or none that float32 holds (infinite, not a number).
// A number of up to 15 digits is the double next to it, then the float next to that.
const char* ReadDecimal(const char* begin, const char* end, float* value);

// What a message says that it found at the front of `rest`: the text up to the first of
// `delimiters`, escaped and cut off where it is long, in quotes, or "the end of the line".
std::string FoundText(absl::string_view rest, absl::string_view delimiters);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_NUMBER_TEXT_H_
