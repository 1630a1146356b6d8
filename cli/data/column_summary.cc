#include "cli/data/column_summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/data/columns/number_column.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

double DeviationOf(double sum, double squares, double count) {
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean));
}

}  // namespace

void ColumnSummary::Add(const ColumnValue& value) {
  ++rows_;
  int64_t found = 0, width = 0;
  ForEachItem(value, "", [&](const ValueItem& item) {
    ++width;
    if (item.kind == ValueItem::Kind::kMissing) return true;
    ++found;
    AddItem(item);
    return true;
  });
  values_ += found;
  if (found == 0) ++missing_;
  if (found > 1) has_lists_ = true;
  if (found == 0 && width <= 1) return;
  widths_differ_ = widths_differ_ || (width_ != 0 && width_ != width);
  width_ = width;
}

void ColumnSummary::AddItem(const ValueItem& item) {
  if (item.kind == ValueItem::Kind::kNumber) is_floating_ = true;
  float number = 0;
  if (!NumberOf(item, &number)) {
    ++texts_;
  } else {
    AddNumber(number);
  }
  const std::string text = item.kind == ValueItem::Kind::kNumber
                               ? absl::StrCat(item.number)
                               : std::string(ItemText(item).view());
  const auto found = counts_.find(text);
  if (found != counts_.end()) {
    ++found->second;
  } else if (counts_.size() < kMostValues) {
    counts_.emplace(text, 1);
  } else {
    overflowed_ = true;
  }
}

void ColumnSummary::AddNumber(float number) {
  const double x = number, size = std::log1p(std::fabs(x)), logarithm = x < 0 ? -size : size;
  if (x != std::floor(x)) ++fractions_;
  ++numbers_;
  min_ = std::min(min_, x);
  max_ = std::max(max_, x);
  sum_ += x;
  squares_ += x * x;
  log_sum_ += logarithm;
  log_squares_ += logarithm * logarithm;
  if (sample_.size() < kMostNumbers) {
    sample_.push_back(number);
    return;
  }
  // Each of n numbers is in the sample with the same probability (Vitter, 1985).
  const uint64_t drawn =
      MixId(static_cast<uint64_t>(numbers_), 1) % static_cast<uint64_t>(numbers_);
  if (drawn < kMostNumbers) sample_[drawn] = number;
}

std::vector<std::pair<std::string, int64_t>> ColumnSummary::Frequent(size_t most) const {
  std::vector<std::pair<std::string, int64_t>> all(counts_.begin(), counts_.end());
  const auto end = all.begin() + static_cast<ptrdiff_t>(std::min(most, all.size()));
  std::partial_sort(all.begin(), end, all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  all.erase(end, all.end());
  return all;
}

double ColumnSummary::Deviation() const {
  return numbers_ == 0 ? 0 : DeviationOf(sum_, squares_, static_cast<double>(numbers_));
}

std::pair<double, double> ColumnSummary::LogMoments() const {
  if (numbers_ == 0) return {0, 0};
  const auto count = static_cast<double>(numbers_);
  return {log_sum_ / count, DeviationOf(log_sum_, log_squares_, count)};
}

double ColumnSummary::Quantile(double share) const {
  if (sample_.empty()) return 0;
  std::vector<float> sorted = sample_;
  const auto place = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(place), sorted.end());
  return sorted[place];
}

}  // namespace keelson
