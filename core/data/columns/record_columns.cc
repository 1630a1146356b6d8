#include "core/data/columns/record_columns.h"

#include <charconv>
#include <cstddef>
#include <iterator>

#include "core/data/columns/value_items.h"

namespace keelson {
namespace {

std::string TextOf(const ValueItem& item) {
  if (item.kind != ValueItem::Kind::kNumber) return std::string(ItemText(item).view());
  char digits[32];
  const std::to_chars_result end = std::to_chars(std::begin(digits), std::end(digits), item.number);
  return std::string(digits, end.ptr);
}

}  // namespace

RecordColumns ColumnTexts(absl::Span<const std::string> names,
                          absl::Span<const ColumnValue> values) {
  RecordColumns columns;
  for (size_t i = 0; i < names.size(); ++i) {
    RecordColumn& column = columns.emplace_back();
    column.name = names[i];
    ForEachItem(values[i], "", [&](const ValueItem& item) {
      column.values.push_back(TextOf(item));
      return true;
    });
  }
  return columns;
}

}  // namespace keelson
