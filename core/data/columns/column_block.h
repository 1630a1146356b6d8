// The columns of some records in memory, whatever file they are from.
#ifndef KEELSON_CORE_DATA_COLUMNS_COLUMN_BLOCK_H_
#define KEELSON_CORE_DATA_COLUMNS_COLUMN_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/data/columns/column_value.h"

namespace keelson {

// The values of one column, of one kind, of all records one after the other.
class BlockColumn {
 public:
  // `kind`: kIntegers, kNumbers or kTexts. Each record has `width` values; 0: any number of them,
  // as EndRecord says.
  explicit BlockColumn(ColumnValue::Kind kind, size_t width = 0) : kind_(kind), width_(width) {}

  // Of the column's kind.
  void Add(int64_t integer) { integers_.push_back(integer); }
  void Add(float number) { numbers_.push_back(number); }
  void Add(absl::string_view text);
  // The values that were added since the last call are a record's. Not with a width.
  void EndRecord() { ends_.push_back(size()); }

  // Those of a whole column. `ends`: of each record where its values end; none with a width.
  void Set(std::vector<int64_t> integers) { integers_ = std::move(integers); }
  void Set(std::vector<float> numbers) { numbers_ = std::move(numbers); }
  void SetEnds(std::vector<uint64_t> ends) { ends_ = std::move(ends); }

  // Call once when all values are there, before Value.
  void Finish();

  // How many values there are.
  size_t size() const;
  uint64_t bytes() const;
  ColumnValue::Kind kind() const { return kind_; }
  size_t width() const { return width_; }
  // A view, which lasts as long as the column.
  ColumnValue Value(size_t record) const;
  // Appends a record of a column of the same kind. Its width is 0.
  void Append(const BlockColumn& from, size_t record);

 private:
  size_t Begin(size_t record) const {
    if (width_ > 0) return record * width_;
    return record == 0 ? 0 : ends_[record - 1];
  }
  size_t End(size_t record) const { return width_ > 0 ? (record + 1) * width_ : ends_[record]; }

  ColumnValue::Kind kind_;
  size_t width_;
  std::vector<int64_t> integers_;
  std::vector<float> numbers_;
  std::vector<char> text_bytes_;     // which stay where they are when the column is moved
  std::vector<uint64_t> text_ends_;  // in text_bytes_
  std::vector<absl::string_view> texts_;
  std::vector<uint64_t> ends_;
};

// In the order of the columns that are read.
struct ColumnBlock {
  int64_t records = 0;
  std::vector<BlockColumn> columns;

  uint64_t bytes() const;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_COLUMN_BLOCK_H_
