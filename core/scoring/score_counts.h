#ifndef KEELSON_CORE_SCORING_SCORE_COUNTS_H_
#define KEELSON_CORE_SCORING_SCORE_COUNTS_H_

#include <cstdint>

namespace keelson {

// How many examples of each label have a score, which is no not-a-number.
struct ScoreCounts {
  double score = 0;
  int64_t positives = 0;
  int64_t negatives = 0;

  int64_t all() const { return positives + negatives; }
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_SCORE_COUNTS_H_
