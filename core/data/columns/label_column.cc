#include "core/data/columns/label_column.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/data/columns/number_column.h"

namespace keelson {
std::optional<std::string> NotALabel(const LabelSpec& label, float value) {
  if (label.num_classes > 0) {
    const bool is_class =
        value >= 0 && value < static_cast<float>(label.num_classes) && value == std::floor(value);
    if (is_class) return std::nullopt;
    return label.num_classes == 2 ? "0 or 1"
                                  : absl::StrCat("a class from 0 to ", label.num_classes - 1);
  }
  if (!std::isfinite(value)) return "a finite number";
  if (label.weighs && value < 0) return "a weight >= 0";
  return std::nullopt;
}

LabelColumn::LabelColumn(const v1::DataConfig::LabelColumn& config, const LabelSpec& label,
                         size_t column)
    : column_(column),
      values_(config.values().begin(), config.values().end()),
      at_least_(config.has_at_least() ? std::optional(config.at_least()) : std::nullopt),
      missing_(config.has_missing() ? std::optional(config.missing()) : std::nullopt),
      label_(label) {}

bool LabelColumn::Read(const ColumnValue& value, float* label, ColumnError* error) const {
  ValueItem item;
  if (!OnlyItem(value, &item)) {
    *error = {column_, "one label", absl::StrCat(CountItems(value, ""))};
    return false;
  }
  if (item.kind != ValueItem::Kind::kMissing) return ReadItem(item, label, error);
  if (!missing_.has_value()) return Fail("a label", item, error);
  *label = *missing_;
  return true;
}

bool LabelColumn::ReadItem(const ValueItem& item, float* label, ColumnError* error) const {
  if (!values_.empty()) {
    const ItemText text(item);
    const auto found = std::find(values_.begin(), values_.end(), text.view());
    if (found == values_.end()) {
      return Fail(absl::StrCat("a label of \"", absl::StrJoin(values_, "\", \""), "\""), item,
                  error);
    }
    *label = static_cast<float>(found - values_.begin());
    return true;
  }
  float number = 0;
  if (!NumberOf(item, &number)) return Fail("a number as the label", item, error);
  if (at_least_.has_value()) {
    *label = number >= *at_least_ ? 1.0f : 0.0f;
    return true;
  }
  *label = number;
  std::optional<std::string> expected = NotALabel(label_, number);
  return !expected.has_value() || Fail(*std::move(expected) + " as the label", item, error);
}

bool LabelColumn::Fail(std::string expected, const ValueItem& found, ColumnError* error) const {
  *error = {column_, std::move(expected), found.FoundText()};
  return false;
}

}  // namespace keelson
