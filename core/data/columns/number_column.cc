#include "core/data/columns/number_column.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/data/columns/number_text.h"

namespace keelson {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Most numbers are whole and short.
bool ReadShortWhole(absl::string_view text, float* number) {
  constexpr size_t kMostBytes = 9;
  if (text.size() > kMostBytes) return false;
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  uint32_t whole = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return false;
    whole = whole * 10 + static_cast<uint32_t>(c - '0');
  }
  *number = negative ? -static_cast<float>(whole) : static_cast<float>(whole);
  return !text.empty();
}

}  // namespace

LogTable::LogTable() {
  for (size_t i = 0; i < logarithms_.size(); ++i) {
    logarithms_[i] = std::log1p(static_cast<float>(i));
  }
}

float LogTable::Log(float x) const {
  const float size = std::fabs(x);
  if (size < static_cast<float>(logarithms_.size())) {
    const auto whole = static_cast<size_t>(size);
    if (static_cast<float>(whole) == size) return x < 0 ? -logarithms_[whole] : logarithms_[whole];
  }
  const float logarithm = std::log1p(size);
  return x < 0 ? -logarithm : logarithm;
}

bool NumberOf(const ValueItem& item, float* number) {
  switch (item.kind) {
    case ValueItem::Kind::kMissing:
      return false;
    case ValueItem::Kind::kText: {
      if (ReadShortWhole(item.text, number)) return true;
      const char* const end = item.text.data() + item.text.size();
      return ReadDecimal(item.text.data(), end, number) == end;
    }
    case ValueItem::Kind::kInteger:
      *number = static_cast<float>(item.integer);
      return true;
    case ValueItem::Kind::kNumber:
      *number = item.number;
      return std::isfinite(*number);
  }
  return false;
}

NumberColumn::NumberColumn(const v1::DataConfig::ColumnValues& values, size_t column,
                           std::shared_ptr<const LogTable> logarithms)
    : column_(column),
      indicator_(values.has_missing()),
      one_(values.separator().empty() && (indicator_ || values.number().size() == 1)),
      separator_(values.separator()),
      size_(indicator_ ? 1 : values.number().size()),
      log_(values.number().log()),
      mean_(values.number().mean()),
      stddev_(values.number().stddev()),
      min_(values.number().has_min() ? values.number().min() : -kInfinity),
      max_(values.number().has_max() ? values.number().max() : kInfinity),
      missing_(values.number().missing()),
      logarithms_(std::move(logarithms)) {}

bool NumberColumn::Write(const ColumnValue& value, float* numbers, ColumnError* error) const {
  const bool text = one_ && value.is_text();
  if (indicator_) {
    *numbers = text ? (value.text().empty() ? 1.0f : 0.0f) : Missing(value);
    return true;
  }
  if (!text) return WriteList(value, numbers, error);
  float x = 0;
  if (value.text().empty()) {
    *numbers = missing_;
    return true;
  }
  if (!ReadShortWhole(value.text(), &x)) {
    return Read(ValueItem::Of(value.text()), numbers, error);
  }
  *numbers = Transformed(x);
  return std::isfinite(*numbers) || Read(ValueItem::Of(value.text()), numbers, error);
}

// 1 where all values are missing.
float NumberColumn::Missing(const ColumnValue& value) const {
  bool missing = true;
  ForEachItem(value, separator_, [&](const ValueItem& item) {
    missing = item.kind == ValueItem::Kind::kMissing;
    return missing;
  });
  return missing ? 1.0f : 0.0f;
}

bool NumberColumn::WriteList(const ColumnValue& value, float* numbers, ColumnError* error) const {
  int64_t count = 0;
  bool any = false, readable = true;
  ForEachItem(value, separator_, [&](const ValueItem& item) {
    if (count < size_) readable = Read(item, numbers + count, error);
    any = any || item.kind != ValueItem::Kind::kMissing;
    ++count;
    return readable;
  });
  if (!readable) return false;
  if (count == size_) return true;
  if (!any && count <= 1) {
    std::fill_n(numbers, size_, missing_);
    return true;
  }
  *error = {column_, size_ == 1 ? "one number" : absl::StrCat(size_, " numbers"),
            absl::StrCat(count)};
  return false;
}

bool NumberColumn::Read(const ValueItem& item, float* number, ColumnError* error) const {
  if (item.kind == ValueItem::Kind::kMissing) {
    *number = missing_;
    return true;
  }
  float x = 0;
  if (!NumberOf(item, &x)) {
    *error = {column_, "a number", item.FoundText()};
    return false;
  }
  *number = Transformed(x);
  if (std::isfinite(*number)) return true;
  *error = {column_, "a number that stays finite as (x - mean) / stddev", item.FoundText()};
  return false;
}

float NumberColumn::Transformed(float x) const {
  if (log_) x = logarithms_->Log(x);
  return std::clamp((x - mean_) / stddev_, min_, max_);
}

}  // namespace keelson
