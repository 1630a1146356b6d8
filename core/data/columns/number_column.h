// Numbers of a dense feature that come from one column.
#ifndef KEELSON_CORE_DATA_COLUMNS_NUMBER_COLUMN_H_
#define KEELSON_CORE_DATA_COLUMNS_NUMBER_COLUMN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/data/columns/column_value.h"
#include "core/data/columns/value_items.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The sign of x times log(1 + |x|), of small whole numbers, which are frequent, from memory.
class LogTable {
 public:
  LogTable();
  float Log(float x) const;

 private:
  std::array<float, 1024> logarithms_;
};

// Immutable.
class NumberColumn {
 public:
  // `values` is of the kind number or missing, and complete (record_plan.h). `column` is its
  // position in RecordMaker::columns().
  NumberColumn(const v1::DataConfig::ColumnValues& values, size_t column,
               std::shared_ptr<const LogTable> logarithms);

  size_t column() const { return column_; }
  // How many numbers there are.
  int64_t size() const { return size_; }

  // Writes size() numbers. False: the value is not so many numbers.
  bool Write(const ColumnValue& value, float* numbers, ColumnError* error) const;

 private:
  bool WriteList(const ColumnValue& value, float* numbers, ColumnError* error) const;
  float Missing(const ColumnValue& value) const;
  bool Read(const ValueItem& item, float* number, ColumnError* error) const;
  float Transformed(float x) const;

  const size_t column_;
  const bool indicator_;  // 1 where the value is missing
  const bool one_;        // one number, which nothing separates
  const std::string separator_;
  const int64_t size_;
  const bool log_;
  const float mean_;
  const float stddev_;
  const float min_;
  const float max_;
  const float missing_;
  const std::shared_ptr<const LogTable> logarithms_;
};

// The number that a value is. False: it is none that float32 holds. Not for a missing one.
bool NumberOf(const ValueItem& item, float* number);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_NUMBER_COLUMN_H_
