#include "bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace keelson::bench {
namespace {

constexpr double kClassWidth = 1.02;
constexpr double kSmallestMicroseconds = 0.01;

int ClassOf(double microseconds) {
  return static_cast<int>(
      std::floor(std::log(std::max(microseconds, kSmallestMicroseconds)) / std::log(kClassWidth)));
}

// The geometric middle of a class.
double MicrosecondsOf(int latency_class) { return std::pow(kClassWidth, latency_class + 0.5); }

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

void LatencyHistogram::Record(double seconds) {
  ++classes_[ClassOf(seconds * 1e6)];
  ++count_;
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (const auto& [latency_class, count] : other.classes_) classes_[latency_class] += count;
  count_ += other.count_;
}

double LatencyHistogram::PercentileMicroseconds(double q) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<int64_t>(std::ceil(q * static_cast<double>(count_)));
  int64_t seen = 0;
  for (const auto& [latency_class, count] : classes_) {
    seen += count;
    if (seen >= rank) return MicrosecondsOf(latency_class);
  }
  return MicrosecondsOf(classes_.rbegin()->first);
}

std::vector<std::pair<int, int64_t>> LatencyHistogram::Classes() const {
  return {classes_.begin(), classes_.end()};
}

LatencyHistogram LatencyHistogram::FromClasses(
    const std::vector<std::pair<int, int64_t>>& classes) {
  LatencyHistogram histogram;
  for (const auto& [latency_class, count] : classes) {
    histogram.classes_[latency_class] += count;
    histogram.count_ += count;
  }
  return histogram;
}

}  // namespace keelson::bench
