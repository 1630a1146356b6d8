// Sums over examples of binary labels: how good and how large their probabilities are as a whole.
#ifndef KEELSON_CORE_SCORING_BINARY_TOTALS_H_
#define KEELSON_CORE_SCORING_BINARY_TOTALS_H_

#include <cstdint>

namespace keelson {

class BinaryTotals {
 public:
  // The probability of the label 1 is 1 / (1 + exp(-score)).
  void Add(float score, bool positive);
  // The examples of both.
  void Add(const BinaryTotals& other);

  int64_t examples() const { return examples_; }
  // Means over the examples; not-a-number without any.
  double PositiveShare() const;
  double MeanProbability() const;
  double CrossEntropy() const;

  // The mean cross-entropy over the entropy of the share of label 1: 1 is what that share scores as
  // the probability of every example, 0 is perfect. Not-a-number where all labels are the same.
  // Source: He et al., "Practical Lessons from Predicting Clicks on Ads at Facebook", ADKDD 2014.
  double NormalizedEntropy() const;
  // The sum of the probabilities over the number of labels 1. Not-a-number without any.
  double CalibrationRatio() const;

 private:
  double cross_entropy_ = 0;
  double probability_ = 0;
  int64_t positives_ = 0;
  int64_t examples_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_BINARY_TOTALS_H_
