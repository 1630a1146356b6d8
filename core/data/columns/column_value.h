// What a record of a file has in one of the file's columns, whatever the file's format.
#ifndef KEELSON_CORE_DATA_COLUMNS_COLUMN_VALUE_H_
#define KEELSON_CORE_DATA_COLUMNS_COLUMN_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace keelson {

// Nothing, one text, or a list of texts, whole numbers or numbers. A view: what it shows outlives
// it, and of each text also the byte behind it, which may be any.
class ColumnValue {
 public:
  enum class Kind { kMissing, kText, kTexts, kIntegers, kNumbers };

  constexpr ColumnValue() = default;
  static ColumnValue Text(absl::string_view text) {
    return ColumnValue(Kind::kText, text.data(), text.size());
  }
  static ColumnValue Texts(absl::Span<const absl::string_view> texts) {
    return ColumnValue(Kind::kTexts, texts.data(), texts.size());
  }
  static ColumnValue Integers(absl::Span<const int64_t> integers) {
    return ColumnValue(Kind::kIntegers, integers.data(), integers.size());
  }
  static ColumnValue Numbers(absl::Span<const float> numbers) {
    return ColumnValue(Kind::kNumbers, numbers.data(), numbers.size());
  }

  Kind kind() const { return kind_; }
  // One text, which is empty where the value is missing.
  bool is_text() const { return kind_ == Kind::kText || kind_ == Kind::kMissing; }
  // Each is for values of the kind that it names.
  absl::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  absl::Span<const absl::string_view> texts() const {
    return {static_cast<const absl::string_view*>(data_), size_};
  }
  absl::Span<const int64_t> integers() const { return {static_cast<const int64_t*>(data_), size_}; }
  absl::Span<const float> numbers() const { return {static_cast<const float*>(data_), size_}; }

 private:
  ColumnValue(Kind kind, const void* data, size_t size) : kind_(kind), data_(data), size_(size) {}

  Kind kind_ = Kind::kMissing;
  const void* data_ = nullptr;
  size_t size_ = 0;
};

// Why a column's value is none that a model can take.
struct ColumnError {
  size_t column = 0;  // its position in RecordMaker::columns()
  std::string expected;
  std::string found;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_COLUMN_VALUE_H_
