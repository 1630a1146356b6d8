#include "core/data/columns/value_items.h"

#include <charconv>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/data/columns/number_text.h"

namespace keelson {

std::string ValueItem::FoundText() const {
  switch (kind) {
    case Kind::kMissing:
      break;
    case Kind::kText:
      return keelson::FoundText(text, "");
    case Kind::kInteger:
      return absl::StrCat(integer);
    case Kind::kNumber:
      return absl::StrCat("the number ", number);
  }
  return "nothing";
}

ItemText::ItemText(const ValueItem& item) : view_(item.text) {
  if (item.kind != ValueItem::Kind::kInteger) return;
  const std::to_chars_result end =
      std::to_chars(std::begin(digits_), std::end(digits_), item.integer);
  view_ = absl::string_view(digits_, end.ptr - digits_);
}

int64_t CountItems(const ColumnValue& value, absl::string_view separator) {
  int64_t count = 0;
  ForEachItem(value, separator, [&](const ValueItem&) {
    ++count;
    return true;
  });
  return count;
}

bool OnlyListItem(const ColumnValue& value, ValueItem* item) {
  *item = ValueItem();
  bool first = true;
  return ForEachItem(value, "", [&](const ValueItem& found) {
    *item = found;
    return std::exchange(first, false);
  });
}

}  // namespace keelson
