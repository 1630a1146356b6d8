// Statistics of repeated measurements: median and spread of runs, percentiles of latencies.
#ifndef KEELSON_BENCH_STATISTICS_H_
#define KEELSON_BENCH_STATISTICS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace keelson::bench {

// The spread of the repetitions of one measurement; zeros without any.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

Spread SpreadOf(std::vector<double> values);

// Latencies by logarithmic classes of 2 %: small, and can be added up over processes and runs.
class LatencyHistogram {
 public:
  void Record(double seconds);
  void Add(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  // Microseconds below which a part `q` in [0, 1] of the latencies lies, within 2 %; 0 without
  // any.
  double PercentileMicroseconds(double q) const;

  // (class, count), ascending.
  std::vector<std::pair<int, int64_t>> Classes() const;
  static LatencyHistogram FromClasses(const std::vector<std::pair<int, int64_t>>& classes);

 private:
  std::map<int, int64_t> classes_;
  int64_t count_ = 0;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_STATISTICS_H_
