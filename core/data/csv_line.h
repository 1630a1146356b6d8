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

// The upper bit of each of 8 bytes that is a separator, of which `repeated` has 8.
inline uint64_t SeparatorsIn(const char* bytes, uint64_t repeated) {
  static_assert(std::endian::native == std::endian::little, "the first byte is the lowest");
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  const uint64_t difference = word ^ repeated;
  return ~(((difference & kLow) + kLow) | difference | kLow);
}

inline absl::string_view WithoutBlanks(const char* begin, const char* end, char separator) {
  const auto is_blank = [separator](char c) { return (c == ' ' || c == '\t') && c != separator; };
  while (begin < end && is_blank(*begin)) ++begin;
  while (begin < end && is_blank(end[-1])) --end;
  return {begin, static_cast<size_t>(end - begin)};
}

// Calls visit(CsvField) for each text between separators, with its blanks.
template <typename Visit>
size_t Split(absl::string_view line, char separator, Visit visit) {
  const char* const first = line.data();
  const char* const end = first + line.size();
  const char* begin = first;
  size_t index = 0;
  const uint64_t repeated = 0x0101010101010101 * static_cast<unsigned char>(separator);
  const auto visit_until = [&](const char* behind) {
    visit(CsvField{
        index++, {begin, static_cast<size_t>(behind - begin)}, static_cast<size_t>(begin - first)});
    begin = behind + 1;
  };
  const auto visit_in = [&](uint64_t found, const char* at) {
    for (; found != 0; found &= found - 1) visit_until(at + std::countr_zero(found) / 8);
  };
  constexpr size_t kPiece = sizeof(uint64_t);
  const char* at = first;
  for (; static_cast<size_t>(end - at) >= kPiece; at += kPiece) {
    visit_in(SeparatorsIn(at, repeated), at);
  }
  if (const size_t left = end - at; left > 0) {
    char last[kPiece] = {};
    std::memcpy(last, at, left);
    visit_in(SeparatorsIn(last, repeated) & ((uint64_t{1} << (8 * left)) - 1), at);
  }
  visit_until(end);
  return index;
}

}  // namespace csv_internal

// Calls visit(CsvField) for each field of a line without quotation marks, and returns how many
// there are: one more than separators. Blanks around a field are none of it.
template <typename Visit>
size_t ForEachPlainField(absl::string_view line, char separator, Visit visit) {
  const bool blanks = std::memchr(line.data(), ' ', line.size()) != nullptr ||
                      (separator != '\t' && std::memchr(line.data(), '\t', line.size()) != nullptr);
  return blanks ? csv_internal::Split(line, separator,
                                      [&](CsvField field) {
                                        field.text = csv_internal::WithoutBlanks(
                                            field.text.data(),
                                            field.text.data() + field.text.size(), separator);
                                        visit(field);
                                      })
                : csv_internal::Split(line, separator, visit);
}

// Likewise of any line. `unescaped` gets the text of a field with two quotation marks in it, and is
// called for each such field; what it returns holds until the fields are used. False: a quotation
// mark is not closed in the line, or something is behind the one that closes; `error` says where.
bool ForEachField(absl::string_view line, const CsvSyntax& syntax,
                  absl::FunctionRef<absl::string_view(std::string)> unescaped,
                  absl::FunctionRef<void(const CsvField&)> visit, RecordError* error);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_CSV_LINE_H_
