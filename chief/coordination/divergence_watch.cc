#include "chief/coordination/divergence_watch.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"

namespace keelson {

void DivergenceWatch::Add(double loss) {
  newest_.push_back(loss);
  if (newest_.size() > kWindow) newest_.pop_front();
  if (first_count_ < kWindow) {
    first_ = first_count_ == 0 ? loss : std::min(first_, loss);
    ++first_count_;
  }
}

double DivergenceWatch::mean() const {
  if (newest_.empty()) return 0;
  // Summed anew, since a running sum would never recover from 1e21.
  const double sum = std::accumulate(newest_.begin(), newest_.end(), 0.0);
  return sum / static_cast<double>(newest_.size());
}

bool DivergenceWatch::diverging() const {
  const double base = restored_ ? std::max(first_, 1.0) : first_;
  return full() && (mean() > kDivergingFactor * base || mean() > DivergedAbove());
}

double DivergenceWatch::DivergedAbove() const {
  return max_loss_ > 0 ? max_loss_ : kDivergedFactor * std::max(first_, 1.0);
}

std::string DivergenceWatch::Diverged(bool ended) const {
  if ((!full() && !ended) || mean() <= DivergedAbove()) return "";
  return absl::StrFormat("the mean training loss of %d steps is %.6g, expected at most %.6g (%s)",
                         newest_.size(), mean(), DivergedAbove(),
                         max_loss_ > 0 ? "train.max_loss" : "a million times the first one");
}

}  // namespace keelson
