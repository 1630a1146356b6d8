// Calibration of probabilities: do 80 % of the examples come true that are given 0.8?
#ifndef KEELSON_CORE_SCORING_CALIBRATION_H_
#define KEELSON_CORE_SCORING_CALIBRATION_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/scoring/score_counts.h"

namespace keelson {

// The examples whose probability is between these two.
struct CalibrationBin {
  double from = 0;
  double to = 0;
  int64_t count = 0;
  double confidence = 0;  // mean of the probabilities
  double accuracy = 0;    // share that came true
};

class Calibration {
 public:
  static constexpr int kBins = 10;  // of equal width

  // `probability` in [0, 1]; not-a-number is left out.
  void Add(double probability, bool came_true);

  // The bins with examples, ascending: [from, to), the last one up to 1.
  std::vector<CalibrationBin> Bins() const;
  // The expected calibration error: the mean over the examples of their bin's distance between
  // confidence and accuracy. Not-a-number without examples.
  // Source: Naeini, Cooper and Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
  // Binning", AAAI 2015.
  double Error() const;

 private:
  struct Sums {
    int64_t count = 0;
    double probability = 0;
    int64_t came_true = 0;
  };

  std::array<Sums, kBins> sums_;
};

// Calibration of the label 1 in ten parts of the examples, by ascending probability, 1 / (1 +
// exp(-score)), from each part's lowest to its highest: as many examples in each, but that those of
// one score are in one part, that of the middle one; parts without any are left out. It tells more
// than bins of equal width where labels 1 are rare. `by_score` is ordered by score, the highest
// first.
std::vector<CalibrationBin> CalibrationByDecile(absl::Span<const ScoreCounts> by_score);

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_CALIBRATION_H_
