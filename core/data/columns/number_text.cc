#include "core/data/columns/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

// Those of which numbers of 15 digits are exact quotients' parts (Clinger, PLDI 1990).
constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr int kExactDigits = 15;

const char* ReadAny(const char* begin, const char* end, double* value) {
  const std::from_chars_result result = std::from_chars(begin, end, *value);
  return result.ec == std::errc() && result.ptr != begin ? result.ptr : nullptr;
}

// Without a sign. Null: it is not a number in the form "12.34" of at most kExactDigits digits.
const char* ReadPlain(const char* begin, const char* end, double* value) {
  uint64_t mantissa = 0;
  int digits = 0, decimals = 0;
  const char* at = begin;
  for (; at < end && IsDigit(*at) && digits < kExactDigits; ++at, ++digits) {
    mantissa = mantissa * 10 + static_cast<uint64_t>(*at - '0');
  }
  if (at < end && *at == '.') {
    for (++at; at < end && IsDigit(*at) && digits < kExactDigits; ++at, ++digits, ++decimals) {
      mantissa = mantissa * 10 + static_cast<uint64_t>(*at - '0');
    }
  }
  const bool ends = at == end || (!IsDigit(*at) && *at != '.' && (*at | 0x20) != 'e');
  if (digits == 0 || !ends) return nullptr;
  *value = static_cast<double>(mantissa);
  if (decimals > 0) *value /= kPowersOfTen[decimals];
  return at;
}

}  // namespace

const char* ReadDecimal(const char* begin, const char* end, float* value) {
  const bool negative = begin < end && *begin == '-';
  if (negative || (begin < end && *begin == '+')) ++begin;
  // from_chars takes a sign, of which there was one.
  if (begin < end && (*begin == '-' || *begin == '+')) return nullptr;
  double number = 0;
  const char* at = ReadPlain(begin, end, &number);
  if (at == nullptr) at = ReadAny(begin, end, &number);
  *value = static_cast<float>(negative ? -number : number);
  return at != nullptr && std::isfinite(*value) ? at : nullptr;
}

std::string FoundText(absl::string_view rest, absl::string_view delimiters) {
  constexpr size_t kLongest = 32;
  if (rest.empty()) return "the end of the line";
  // A delimiter that was not expected is found itself.
  const absl::string_view text =
      rest.substr(0, std::max<size_t>(1, rest.find_first_of(delimiters)));
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kLongest)),
                      text.size() > kLongest ? "...\"" : "\"");
}

}  // namespace keelson
