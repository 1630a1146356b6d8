// The distribution of values, as TensorBoard shows it. Format: tsl/lib/histogram/histogram.h, with
// its default buckets.
#ifndef KEELSON_CORE_SUMMARY_HISTOGRAM_H_
#define KEELSON_CORE_SUMMARY_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "keelson/v1/event.pb.h"

namespace keelson {

// Values that are not finite are only counted, separately from all others. Size: 12 KiB. Not
// thread-safe.
class Histogram {
 public:
  Histogram();

  void Add(absl::Span<const float> values);

  int64_t non_finite() const { return non_finite_; }

  // counts()[i] values are in [BucketLimits()[i - 1], BucketLimits()[i]).
  absl::Span<const int64_t> counts() const { return counts_; }
  // 0, and to both sides 1e-12 growing by a tenth up to 1e20, and the largest double.
  static absl::Span<const double> BucketLimits();

  // Empty buckets in a row become one. Without a finite value the minimum is the largest double and
  // the maximum its negative, as in TensorFlow.
  v1::HistogramProto ToProto() const;

 private:
  std::vector<int64_t> counts_;
  double min_;
  double max_;
  double sum_ = 0;
  double sum_squares_ = 0;
  int64_t num_ = 0;
  int64_t non_finite_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_HISTOGRAM_H_
