// Calibration of probabilities: do 80 % of the examples come true that are given 0.8?
#ifndef KEELSON_CORE_SCORING_CALIBRATION_H_
#define KEELSON_CORE_SCORING_CALIBRATION_H_

#include <array>
#include <cstdint>
#include <vector>

namespace keelson {

// The examples whose probability is in [from, to), in the last bin up to 1.
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

  // The bins with examples, ascending.
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

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_CALIBRATION_H_
