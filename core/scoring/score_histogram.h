// The distribution of scores by label.
#ifndef KEELSON_CORE_SCORING_SCORE_HISTOGRAM_H_
#define KEELSON_CORE_SCORING_SCORE_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/scoring/score_counts.h"

namespace keelson {

// The examples whose score is in [from, to).
struct ScoreBin {
  double from = 0;
  double to = 0;
  int64_t negatives = 0;
  int64_t positives = 0;
};

inline constexpr int kScoreBins = 40;

// Bins of equal width, ascending, from the score below which 0.1 % of the examples are to that
// above which 0.1 % are: a few extreme scores leave the others apart. The first and the last bin
// have also what is beyond. One bin where these scores are the same; none without a finite score.
// `by_score` is ordered by score, the highest first.
std::vector<ScoreBin> ScoreHistogram(absl::Span<const ScoreCounts> by_score);

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_SCORE_HISTOGRAM_H_
