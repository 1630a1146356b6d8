// What is in a column of a file: counts, extremes and the most frequent values.
#ifndef KEELSON_CLI_DATA_COLUMN_SUMMARY_H_
#define KEELSON_CLI_DATA_COLUMN_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/data/columns/column_value.h"
#include "core/data/columns/value_items.h"

namespace keelson {

class ColumnSummary {
 public:
  // So many different values are told apart, and counted exactly.
  static constexpr size_t kMostValues = 100'000;
  // Quantiles are those of so many numbers, drawn of all of them.
  static constexpr size_t kMostNumbers = 10'000;

  // A column of one row.
  void Add(const ColumnValue& value);

  int64_t rows() const { return rows_; }
  int64_t missing() const { return missing_; }
  // Single values: where a row has several, there are more than rows.
  int64_t values() const { return values_; }
  bool has_lists() const { return has_lists_; }
  // Whether a value came as a number that is none of the whole ones, and has no text.
  bool is_floating() const { return is_floating_; }
  // The number of values that each row has which has any. 0: it differs.
  int64_t width() const { return widths_differ_ ? 0 : width_; }
  // Whether every value is a number, or even a whole one. False without a value.
  bool all_numbers() const { return values_ > 0 && texts_ == 0; }
  bool all_whole() const { return all_numbers() && fractions_ == 0; }

  // How many values differ; beyond kMostValues, which is then, that is all that is known.
  size_t distinct() const { return counts_.size(); }
  bool distinct_is_exact() const { return !overflowed_; }
  // The most frequent texts of at most `most`, with their counts, then by their order; of those
  // that are told apart.
  std::vector<std::pair<std::string, int64_t>> Frequent(size_t most) const;

  // These are computed of the values that are numbers, and are 0 without one.
  double min() const { return numbers_ == 0 ? 0 : min_; }
  double max() const { return numbers_ == 0 ? 0 : max_; }
  double mean() const { return numbers_ == 0 ? 0 : sum_ / static_cast<double>(numbers_); }
  double Deviation() const;
  // In [0, 1].
  double Quantile(double share) const;
  // The mean and the deviation of the sign of x times log(1 + |x|).
  std::pair<double, double> LogMoments() const;

 private:
  void AddItem(const ValueItem& item);
  void AddNumber(float number);

  int64_t rows_ = 0;
  int64_t missing_ = 0;
  int64_t values_ = 0;
  int64_t texts_ = 0;  // that are no numbers
  int64_t fractions_ = 0;
  int64_t width_ = 0;
  bool widths_differ_ = false;
  bool has_lists_ = false;
  bool is_floating_ = false;
  bool overflowed_ = false;
  absl::flat_hash_map<std::string, int64_t> counts_;

  int64_t numbers_ = 0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
  double squares_ = 0;
  double log_sum_ = 0;
  double log_squares_ = 0;
  std::vector<float> sample_;
};

}  // namespace keelson

#endif  // KEELSON_CLI_DATA_COLUMN_SUMMARY_H_
