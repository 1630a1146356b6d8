#include "core/scoring/calibration.h"

#include <algorithm>
#include <cmath>

namespace keelson {

void Calibration::Add(double probability, bool came_true) {
  if (std::isnan(probability)) return;
  const int bin = std::clamp(static_cast<int>(probability * kBins), 0, kBins - 1);
  Sums& sums = sums_[bin];
  ++sums.count;
  sums.probability += probability;
  sums.came_true += came_true ? 1 : 0;
}

std::vector<CalibrationBin> Calibration::Bins() const {
  std::vector<CalibrationBin> bins;
  for (int i = 0; i < kBins; ++i) {
    const Sums& sums = sums_[i];
    if (sums.count == 0) continue;
    const auto count = static_cast<double>(sums.count);
    bins.push_back({.from = static_cast<double>(i) / kBins,
                    .to = static_cast<double>(i + 1) / kBins,
                    .count = sums.count,
                    .confidence = sums.probability / count,
                    .accuracy = static_cast<double>(sums.came_true) / count});
  }
  return bins;
}

double Calibration::Error() const {
  double distance = 0;
  int64_t examples = 0;
  for (const CalibrationBin& bin : Bins()) {
    distance += static_cast<double>(bin.count) * std::abs(bin.confidence - bin.accuracy);
    examples += bin.count;
  }
  return distance / static_cast<double>(examples);
}

}  // namespace keelson
