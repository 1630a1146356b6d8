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

std::vector<CalibrationBin> CalibrationByDecile(absl::Span<const ScoreCounts> by_score) {
  constexpr int64_t kParts = 10;
  int64_t all = 0;
  for (const ScoreCounts& here : by_score) all += here.all();
  std::array<CalibrationBin, kParts> parts;
  int64_t below = 0;
  for (auto here = by_score.rbegin(); here != by_score.rend(); ++here) {
    const double probability = 1 / (1 + std::exp(-here->score));
    CalibrationBin& part = parts[(2 * below + here->all() - 1) * kParts / (2 * all)];
    if (part.count == 0) part.from = probability;
    part.to = probability;
    part.count += here->all();
    // Sums first, means in the end.
    part.confidence += probability * static_cast<double>(here->all());
    part.accuracy += static_cast<double>(here->positives);
    below += here->all();
  }
  std::vector<CalibrationBin> bins;
  for (CalibrationBin& part : parts) {
    if (part.count == 0) continue;
    part.confidence /= static_cast<double>(part.count);
    part.accuracy /= static_cast<double>(part.count);
    bins.push_back(part);
  }
  return bins;
}

}  // namespace keelson
