// The scores of examples of binary labels, and how well they rank those of label 1 above those of
// label 0.
#ifndef KEELSON_CORE_SCORING_BINARY_RANKING_H_
#define KEELSON_CORE_SCORING_BINARY_RANKING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/scoring/curve.h"
#include "core/scoring/score_counts.h"

namespace keelson {

struct RankingCurves {
  static constexpr size_t kMaxPoints = 200;

  // Area under the receiver operating characteristic: the probability that an example of label 1
  // has a higher score than one of label 0, equal scores counting a half.
  double auc = 0;
  // Average precision: the sum over the thresholds of (recall gained) x precision, without
  // interpolation, which is too optimistic.
  // Source: Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", ICML
  // 2006; the sum is scikit-learn's average_precision_score.
  double auc_pr = 0;
  // x: false positive rate, y: true positive rate, from (0, 0) to (1, 1).
  std::vector<CurvePoint> roc;
  // x: recall, y: precision, from (0, 1) to recall 1.
  std::vector<CurvePoint> precision_recall;
};

// `by_score` is ordered by score, the highest first. Not-a-number and no points without examples of
// both labels.
RankingCurves RankingCurvesOf(absl::Span<const ScoreCounts> by_score);

// Keeps the scores of up to kExactScores examples; the areas are then exact. With more examples it
// counts them in bins, at most 16 MiB: scores that agree in sign, exponent and the first 11 bits of
// the fraction (a relative distance of at most 2^-11) count as the one in their middle. A pair of
// examples of both labels in one bin is then half a mistake whichever comes first: the area under
// the ROC is wrong by at most half the share of such pairs.
class BinaryRanking {
 public:
  static constexpr int64_t kExactScores = int64_t{1} << 20;

  // A higher score means that the label 1 is more likely.
  void Add(float score, bool positive);

  // The counts for each score, the highest first; nothing when a score was not a number.
  std::vector<ScoreCounts> ByScore() const;

 private:
  // Examples of both labels.
  struct Counts {
    int64_t positives = 0;
    int64_t negatives = 0;
  };

  void AddToBin(float score, bool positive);
  void MoveToBins();
  std::vector<ScoreCounts> ExactCounts() const;

  // Unsorted; empty once there are bins.
  std::vector<float> positive_scores_;
  std::vector<float> negative_scores_;
  // Ascending by score.
  std::vector<Counts> bins_;
  bool not_a_number_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_BINARY_RANKING_H_
