// The fields of a line of a CSV file.
#ifndef KEELSON_CORE_DATA_CSV_LINE_H_
#define KEELSON_CORE_DATA_CSV_LINE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/data/record_format.h"

namespace keelson {

struct CsvSyntax {
  char separator = ',';
  // A field that begins with a quotation mark ends with one; two of them within it are one.
  bool quotes = true;
};

struct CsvField {
  size_t index = 0;        // from 0
  absl::string_view text;  // without blanks around it and quotation marks
  size_t begin = 0;        // the byte of the line, from 0, where the field begins
};

namespace csv_internal {

// Of each byte that is `repeated`'s its upper bit, exactly.
inline uint64_t BytesOf(uint64_t word, uint64_t repeated) {
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  const uint64_t difference = word ^ repeated;
  return ~(((difference & kLow) + kLow) | difference | kLow);
}

inline absl::string_view WithoutBlanks(const char* begin, const char* end, char separator) {
  const auto is_blank = [separator](char c) { return (c == ' ' || c == '\t') && c != separator; };
  while (begin < end && is_blank(*begin)) ++begin;
  while (begin < end && is_blank(end[-1])) --end;
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace csv_internal

// Calls visit(CsvField) for each field of a line without quotation marks, and returns how many
// there are: one more than separators. Blanks around a field are none of it.
template <typename Visit>
size_t ForEachPlainField(absl::string_view line, char separator, Visit visit) {
  static_assert(std::endian::native == std::endian::little, "a word's first byte is its lowest");
  const char* const first = line.data();
  const char* const end = first + line.size();
  const char* begin = first;
  size_t index = 0;
  const auto add = [&](const char* behind) {
    visit(CsvField{index++, csv_internal::WithoutBlanks(begin, behind, separator),
                   static_cast<size_t>(begin - first)});
    begin = behind + 1;
  };
  const uint64_t repeated = 0x0101010101010101 * static_cast<unsigned char>(separator);
  for (const char* at = first; at < end; at += sizeof(uint64_t)) {
    const size_t left = end - at;
    uint64_t word;
    uint64_t separators;
    if (left >= sizeof(word)) {
      std::memcpy(&word, at, sizeof(word));
      separators = csv_internal::BytesOf(word, repeated);
    } else {
      word = 0;
      std::memcpy(&word, at, left);
      separators = csv_internal::BytesOf(word, repeated) & ((uint64_t{1} << (8 * left)) - 1);
    }
    for (; separators != 0; separators &= separators - 1) {
      add(at + std::countr_zero(separators) / 8);
    }
  }
  add(end);
  return index;
}

// Likewise of any line. `unescaped` gets the text of a field with two quotation marks in it, and is
// called for each such field; what it returns holds until the fields are used. False: a quotation
// mark is not closed in the line, or something is behind the one that closes; `error` says where.
bool ForEachField(absl::string_view line, const CsvSyntax& syntax,
                  absl::FunctionRef<absl::string_view(std::string)> unescaped,
                  absl::FunctionRef<void(const CsvField&)> visit, RecordError* error);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_CSV_LINE_H_
