#include "core/summary/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace keelson {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

std::vector<double> MakeBucketLimits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(kLargest);
  std::vector<double> limits;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) limits.push_back(-*limit);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

// Sign, exponent and so many bits of the fraction: floats that begin alike are at most a sixteenth
// apart, less than a bucket is wide.
constexpr int kPrefixBits = 1 + 8 + 4;
constexpr int kRestBits = 32 - kPrefixBits;

// By prefix, the bucket of the lowest float with that prefix; arbitrary for floats that are not
// finite.
std::vector<uint16_t> MakeFirstBuckets(absl::Span<const double> limits) {
  std::vector<uint16_t> buckets(size_t{1} << kPrefixBits);
  for (uint32_t prefix = 0; prefix < buckets.size(); ++prefix) {
    const bool negative = prefix >> (kPrefixBits - 1) != 0;
    const uint32_t rest = negative ? (uint32_t{1} << kRestBits) - 1 : 0;
    const double lowest = std::bit_cast<float>(prefix << kRestBits | rest);
    if (!std::isfinite(lowest)) continue;
    buckets[prefix] = static_cast<uint16_t>(std::upper_bound(limits.begin(), limits.end(), lowest) -
                                            limits.begin());
  }
  return buckets;
}

absl::Span<const uint16_t> FirstBuckets() {
  static const auto* const buckets =
      new std::vector<uint16_t>(MakeFirstBuckets(Histogram::BucketLimits()));
  return *buckets;
}

}  // namespace

absl::Span<const double> Histogram::BucketLimits() {
  static const auto* const limits = new std::vector<double>(MakeBucketLimits());
  return *limits;
}

Histogram::Histogram() : counts_(BucketLimits().size()), min_(kLargest), max_(-kLargest) {}

void Histogram::Add(absl::Span<const float> values) {
  const absl::Span<const double> limits = BucketLimits();
  const absl::Span<const uint16_t> first_buckets = FirstBuckets();
  for (const float element : values) {
    if (!std::isfinite(element)) {
      ++non_finite_;
      continue;
    }
    const double value = element;
    size_t bucket = first_buckets[std::bit_cast<uint32_t>(element) >> kRestBits];
    while (value >= limits[bucket]) ++bucket;
    ++counts_[bucket];
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    sum_ += value;
    sum_squares_ += value * value;
    ++num_;
  }
}

v1::HistogramProto Histogram::ToProto() const {
  v1::HistogramProto out;
  out.set_min(min_);
  out.set_max(max_);
  out.set_num(static_cast<double>(num_));
  out.set_sum(sum_);
  out.set_sum_squares(sum_squares_);
  const absl::Span<const double> limits = BucketLimits();
  for (size_t i = 0; i < counts_.size(); ++i) {
    const bool continues = counts_[i] == 0 && i + 1 < counts_.size() && counts_[i + 1] == 0;
    if (continues) continue;
    out.add_bucket_limit(limits[i]);
    out.add_bucket(static_cast<double>(counts_[i]));
  }
  return out;
}

}  // namespace keelson
