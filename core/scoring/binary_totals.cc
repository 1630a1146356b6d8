#include "core/scoring/binary_totals.h"

#include <cmath>
#include <limits>

namespace keelson {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// log(1 + exp(x)), which overflows for no x.
double Softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

}  // namespace

void BinaryTotals::Add(float score, bool positive) {
  const double logit = score;
  cross_entropy_ += Softplus(positive ? -logit : logit);
  probability_ += 1 / (1 + std::exp(-logit));
  positives_ += positive ? 1 : 0;
  ++examples_;
}

void BinaryTotals::Add(const BinaryTotals& other) {
  cross_entropy_ += other.cross_entropy_;
  probability_ += other.probability_;
  positives_ += other.positives_;
  examples_ += other.examples_;
}

double BinaryTotals::PositiveShare() const {
  return static_cast<double>(positives_) / static_cast<double>(examples_);
}

double BinaryTotals::MeanProbability() const {
  return probability_ / static_cast<double>(examples_);
}

double BinaryTotals::CrossEntropy() const {
  return cross_entropy_ / static_cast<double>(examples_);
}

double BinaryTotals::NormalizedEntropy() const {
  if (positives_ == 0 || positives_ == examples_) return kNoValue;
  const auto examples = static_cast<double>(examples_);
  const double share = static_cast<double>(positives_) / examples;
  const double entropy = -share * std::log(share) - (1 - share) * std::log1p(-share);
  return cross_entropy_ / examples / entropy;
}

double BinaryTotals::CalibrationRatio() const {
  return positives_ == 0 ? kNoValue : probability_ / static_cast<double>(positives_);
}

}  // namespace keelson
