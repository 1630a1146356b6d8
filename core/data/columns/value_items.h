// The single values of a column's value.
#ifndef KEELSON_CORE_DATA_COLUMNS_VALUE_ITEMS_H_
#define KEELSON_CORE_DATA_COLUMNS_VALUE_ITEMS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/data/columns/column_value.h"

namespace keelson {

// One value. An empty text and not-a-number are missing.
struct ValueItem {
  enum class Kind { kMissing, kText, kInteger, kNumber };

  static ValueItem Of(absl::string_view value) {
    ValueItem item;
    if (value.empty()) return item;
    item.kind = Kind::kText;
    item.text = value;
    return item;
  }
  static ValueItem Of(int64_t value) {
    ValueItem item;
    item.kind = Kind::kInteger;
    item.integer = value;
    return item;
  }
  static ValueItem Of(float value) {
    ValueItem item;
    if (std::isnan(value)) return item;
    item.kind = Kind::kNumber;
    item.number = value;
    return item;
  }

  // For messages: "\"x\"", "3", "nothing".
  std::string FoundText() const;

  Kind kind = Kind::kMissing;
  absl::string_view text;
  int64_t integer = 0;
  float number = 0;
};

// What a value is as a text, by which it is hashed and looked up: the text itself, or the decimal
// one of a whole number. Empty of others.
class ItemText {
 public:
  explicit ItemText(const ValueItem& item);
  ItemText(const ItemText&) = delete;
  ItemText& operator=(const ItemText&) = delete;

  absl::string_view view() const { return view_; }

 private:
  char digits_[24];
  absl::string_view view_;
};

inline absl::string_view WithoutBlanks(absl::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Calls visit(ValueItem) for each value, until one call returns false, which it then returns too.
// `separator` is between the values of a text, and blanks around each are none of it; without one a
// text is one value. What is missing has no value, nor has an empty list.
template <typename Visit>
bool ForEachItem(const ColumnValue& value, absl::string_view separator, Visit visit) {
  const auto visit_text = [&](absl::string_view text) {
    if (separator.empty() || text.empty()) return visit(ValueItem::Of(text));
    for (;;) {
      const size_t end = std::min(text.find(separator), text.size());
      if (!visit(ValueItem::Of(WithoutBlanks(text.substr(0, end))))) return false;
      if (end == text.size()) return true;
      text.remove_prefix(end + separator.size());
    }
  };
  const auto visit_all = [](auto values, const auto& each) {
    return std::all_of(values.begin(), values.end(), each);
  };
  const auto visit_one = [&](auto single) { return visit(ValueItem::Of(single)); };
  switch (value.kind()) {
    case ColumnValue::Kind::kMissing:
      return true;
    case ColumnValue::Kind::kText:
      return visit_text(value.text());
    case ColumnValue::Kind::kTexts:
      return visit_all(value.texts(), visit_text);
    case ColumnValue::Kind::kIntegers:
      return visit_all(value.integers(), visit_one);
    case ColumnValue::Kind::kNumbers:
      return visit_all(value.numbers(), visit_one);
  }
  return true;
}

// How many values there are, counted as ForEachItem does.
int64_t CountItems(const ColumnValue& value, absl::string_view separator);

// Of a list: its only value, or a missing one where there is none. False: there are several.
bool OnlyListItem(const ColumnValue& value, ValueItem* item);

// The value of a column that shall have one, likewise.
inline bool OnlyItem(const ColumnValue& value, ValueItem* item) {
  const ColumnValue::Kind kind = value.kind();
  if (kind != ColumnValue::Kind::kText && kind != ColumnValue::Kind::kMissing) {
    return OnlyListItem(value, item);
  }
  *item = ValueItem::Of(value.text());  // which is empty where it is missing
  return true;
}

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_VALUE_ITEMS_H_
