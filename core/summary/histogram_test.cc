#include "core/summary/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr double kLargest = std::numeric_limits<double>::max();

int64_t CountAt(const Histogram& histogram, double limit) {
  const absl::Span<const double> limits = Histogram::BucketLimits();
  for (size_t i = 0; i < limits.size(); ++i) {
    if (limits[i] == limit) return histogram.counts()[i];
  }
  ADD_FAILURE() << "no bucket ends at " << limit;
  return -1;
}

TEST(Histogram, LimitsAreTensorFlowsDefault) {
  const absl::Span<const double> limits = Histogram::BucketLimits();
  ASSERT_EQ(limits.size(), 1551u);
  EXPECT_EQ(limits.front(), -kLargest);
  EXPECT_EQ(limits.back(), kLargest);
  EXPECT_EQ(limits[775], 0);
  EXPECT_EQ(limits[776], 1e-12);
  EXPECT_EQ(limits[777], 1e-12 * 1.1);
  EXPECT_LT(limits[1549], 1e20);
  EXPECT_GE(limits[1549] * 1.1, 1e20);
  for (size_t i = 0; i < 775; ++i) {
    ASSERT_EQ(limits[i], -limits[limits.size() - 1 - i]);
    ASSERT_LT(limits[i], limits[i + 1]);
  }
}

TEST(Histogram, TellsSumsAndExtremes) {
  Histogram histogram;
  histogram.Add({1.5f, -2.0f});
  histogram.Add({0.5f});
  const v1::HistogramProto proto = histogram.ToProto();
  EXPECT_EQ(proto.num(), 3);
  EXPECT_EQ(proto.min(), -2);
  EXPECT_EQ(proto.max(), 1.5);
  EXPECT_EQ(proto.sum(), 0);
  EXPECT_EQ(proto.sum_squares(), 6.5);
}

TEST(Histogram, ABucketHasItsLowerEndAndNotItsUpper) {
  Histogram histogram;
  histogram.Add({0.0f, -0.0f, 1e-20f, -1e-20f, std::numeric_limits<float>::max()});
  EXPECT_EQ(CountAt(histogram, 1e-12), 3);
  EXPECT_EQ(CountAt(histogram, 0), 1);
  EXPECT_EQ(CountAt(histogram, kLargest), 1);
}

// Where sign, exponent and fraction change, at the limits, and everywhere between.
TEST(Histogram, EveryFloatIsInTheBucketOfItsLimits) {
  const absl::Span<const double> limits = Histogram::BucketLimits();
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0xffff0000u; bits += 0xffffu) {
    values.push_back(std::bit_cast<float>(bits));
  }
  for (const double limit : limits) {
    const auto near = static_cast<float>(limit);
    values.insert(values.end(),
                  {near, std::nextafter(near, -INFINITY), std::nextafter(near, INFINITY)});
  }
  Histogram histogram;
  std::vector<int64_t> expected(limits.size());
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    ++expected[std::upper_bound(limits.begin(), limits.end(), static_cast<double>(value)) -
               limits.begin()];
  }
  histogram.Add(values);
  EXPECT_THAT(histogram.counts(), ElementsAreArray(expected));
}

TEST(Histogram, CountsNonFiniteValuesApart) {
  Histogram histogram;
  histogram.Add({NAN, 1.0f, INFINITY, -INFINITY});
  EXPECT_EQ(histogram.non_finite(), 3);
  const v1::HistogramProto proto = histogram.ToProto();
  EXPECT_EQ(proto.num(), 1);
  EXPECT_EQ(proto.sum(), 1);
  EXPECT_EQ(proto.max(), 1);
  const auto counts = histogram.counts();
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 1);
}

TEST(Histogram, EmptyBucketsInARowBecomeOne) {
  Histogram histogram;
  histogram.Add({0.0f, 0.0f, 1e-12f * 1.05f});
  const v1::HistogramProto proto = histogram.ToProto();
  EXPECT_THAT(proto.bucket(), ElementsAre(0, 2, 1, 0));
  EXPECT_THAT(proto.bucket_limit(), ElementsAre(0, 1e-12, 1e-12 * 1.1, kLargest));
  EXPECT_EQ(proto.num(), 3);
  EXPECT_EQ(proto.min(), 0);
  EXPECT_EQ(proto.max(), static_cast<double>(1e-12f * 1.05f));
}

TEST(Histogram, WithoutValuesItHasOneEmptyBucket) {
  const v1::HistogramProto proto = Histogram().ToProto();
  EXPECT_THAT(proto.bucket(), ElementsAre(0));
  EXPECT_THAT(proto.bucket_limit(), ElementsAre(kLargest));
  EXPECT_EQ(proto.num(), 0);
  EXPECT_EQ(proto.min(), kLargest);
  EXPECT_EQ(proto.max(), -kLargest);
}

}  // namespace
}  // namespace keelson
