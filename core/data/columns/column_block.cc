#include "core/data/columns/column_block.h"

#include "absl/types/span.h"

namespace keelson {

void BlockColumn::Add(absl::string_view text) {
  text_bytes_.insert(text_bytes_.end(), text.begin(), text.end());
  text_ends_.push_back(text_bytes_.size());
}

void BlockColumn::Finish() {
  text_bytes_.push_back('\0');  // behind the last text, too, a byte may be read
  texts_.reserve(text_ends_.size());
  size_t begin = 0;
  for (const uint64_t end : text_ends_) {
    texts_.emplace_back(text_bytes_.data() + begin, end - begin);
    begin = end;
  }
}

size_t BlockColumn::size() const {
  switch (kind_) {
    case ColumnValue::Kind::kIntegers:
      return integers_.size();
    case ColumnValue::Kind::kNumbers:
      return numbers_.size();
    default:
      return text_ends_.size();
  }
}

uint64_t BlockColumn::bytes() const {
  return integers_.size() * sizeof(int64_t) + numbers_.size() * sizeof(float) + text_bytes_.size() +
         text_ends_.size() * (sizeof(uint64_t) + sizeof(absl::string_view)) +
         ends_.size() * sizeof(uint64_t);
}

ColumnValue BlockColumn::Value(size_t record) const {
  const size_t begin = Begin(record), size = End(record) - begin;
  if (size == 0) return ColumnValue();
  switch (kind_) {
    case ColumnValue::Kind::kIntegers:
      return ColumnValue::Integers(absl::MakeSpan(integers_).subspan(begin, size));
    case ColumnValue::Kind::kNumbers:
      return ColumnValue::Numbers(absl::MakeSpan(numbers_).subspan(begin, size));
    default:
      // One text is taken as such, which is quicker than a list of one.
      if (size == 1) return ColumnValue::Text(texts_[begin]);
      return ColumnValue::Texts(absl::MakeSpan(texts_).subspan(begin, size));
  }
}

void BlockColumn::Append(const BlockColumn& from, size_t record) {
  for (size_t i = from.Begin(record); i < from.End(record); ++i) {
    switch (kind_) {
      case ColumnValue::Kind::kIntegers:
        Add(from.integers_[i]);
        break;
      case ColumnValue::Kind::kNumbers:
        Add(from.numbers_[i]);
        break;
      default:
        Add(from.texts_[i]);
    }
  }
  EndRecord();
}

uint64_t ColumnBlock::bytes() const {
  uint64_t bytes = 0;
  for (const BlockColumn& column : columns) bytes += column.bytes();
  return bytes;
}

}  // namespace keelson
