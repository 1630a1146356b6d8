#include "core/optim/catch_up.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace keelson {
namespace {

// Powers of beta2 up to where they are below 10^-7 with the usual 0.999: 128 KiB.
constexpr int64_t kMostSums = 16384;

}  // namespace

PowerTable::PowerTable(double base) {
  for (auto& level : levels_) {
    level[0] = 1;
    for (size_t i = 1; i < kEntries; ++i) level[i] = level[i - 1] * base;
    base *= level[kEntries - 1];
  }
}

double BiasCorrection::At(int64_t t) const {
  const auto exponent =
      static_cast<uint32_t>(std::min<int64_t>(t, std::numeric_limits<uint32_t>::max()));
  return std::sqrt(1 - beta2_(exponent)) / (1 - beta1_(exponent));
}

AdamSeries::AdamSeries(const AdamRule& rule)
    : q_(rule.beta1 / std::sqrt(double{rule.beta2})),
      correction_(rule),
      beta1_(rule.beta1),
      beta2_(rule.beta2),
      q_power_(q_) {
  // The last sum of the table follows from the formula for those behind it, the others from their
  // successors: All(t) = q * (correction(t + 1) + All(t + 1)).
  const double last = All(kMostSums);
  std::vector<double> sums(kMostSums + 1, last);
  for (int64_t t = kMostSums - 1; t >= 0; --t) {
    const auto i = static_cast<size_t>(t);
    sums[i] = q_ * (correction_.At(t + 1) + sums[i + 1]);
  }
  all_ = std::move(sums);
}

// Behind the table the correction is nearly linear over the terms that count, and its mean is that
// at their mean position 1 / (1 - q).
double AdamSeries::All(int64_t t) const {
  if (t < static_cast<int64_t>(all_.size())) return all_[static_cast<size_t>(t)];
  const auto middle = static_cast<int64_t>(std::lround(std::min(1e9, 1 / (1 - q_))));
  return q_ / (1 - q_) * correction_.At(t + middle);
}

// A denormal number would only be slow.
float AdamSeries::FactorOfM(uint32_t k) const {
  const double power = beta1_(k);
  return power < 1e-20 ? 0.0f : static_cast<float>(power);
}

float AdamSeries::FactorOfV(uint32_t k) const {
  const double power = beta2_(k);
  return power < std::numeric_limits<float>::min() ? 0.0f : static_cast<float>(power);
}

}  // namespace keelson
