// A label that comes from a column.
#ifndef KEELSON_CORE_DATA_COLUMNS_LABEL_COLUMN_H_
#define KEELSON_CORE_DATA_COLUMNS_LABEL_COLUMN_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/data/columns/column_value.h"
#include "core/data/columns/value_items.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Immutable.
class LabelColumn {
 public:
  // `config` is complete (record_plan.h). `column` is its position in RecordMaker::columns().
  LabelColumn(const v1::DataConfig::LabelColumn& config, const LabelSpec& label, size_t column);

  size_t column() const { return column_; }

  // False: the value is no label that the model's losses take.
  bool Read(const ColumnValue& value, float* label, ColumnError* error) const;

 private:
  bool ReadItem(const ValueItem& item, float* label, ColumnError* error) const;
  bool Fail(std::string expected, const ValueItem& found, ColumnError* error) const;

  const size_t column_;
  const std::vector<std::string> values_;
  const std::optional<float> at_least_;
  const std::optional<float> missing_;
  const LabelSpec label_;
};

// What a loss takes as this label, "a class from 0 to 9"; nullopt: it takes `value`.
std::optional<std::string> NotALabel(const LabelSpec& label, float value);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_LABEL_COLUMN_H_
