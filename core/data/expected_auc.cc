#include "core/data/expected_auc.h"

#include <algorithm>

namespace keelson {

double ExpectedAuc(std::vector<std::pair<float, double>> scored) {
  std::sort(scored.begin(), scored.end());
  double below = 0, ordered = 0, ones = 0;
  for (const auto& [score, p] : scored) {
    ordered += p * (below + (1 - p) / 2);
    below += 1 - p;
    ones += p;
  }
  return ordered / (ones * below);
}

}  // namespace keelson
