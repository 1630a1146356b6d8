// Measures how well scores rank the examples of label 1 above those of label 0 within each group of
// examples, such as those of a user.
#ifndef KEELSON_CORE_SCORING_GROUP_RANKING_H_
#define KEELSON_CORE_SCORING_GROUP_RANKING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace keelson {

struct GroupRankingFigures {
  // The mean of the groups' areas under the ROC (RankingCurves::auc), weighted by their examples,
  // and with the same weight for each. Not-a-number without groups, or when a score was not a
  // number.
  // Source: Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018.
  double auc = 0;
  double mean_auc = 0;
  // Those that have both labels, and their examples.
  int64_t groups = 0;
  int64_t examples = 0;
  // Groups that were left out, as all of their labels are the same.
  int64_t one_label_groups = 0;
  // The part of all groups' ids from which these are, 1 or less.
  double sampled = 1;
};

// Keeps up to kMostExamples examples, 32 MiB; the figures are then exact. With more it keeps whole
// groups, those of the lower hashes, and halves the range of hashes until they fit: a sample in
// which every group is as likely as any other, the same in whatever order examples come. A group of
// more than kMostExamples leaves no room for itself, nor for those of higher hashes.
class GroupRanking {
 public:
  static constexpr size_t kMostExamples = size_t{1} << 21;

  // `most_examples` > 0: fewer for tests.
  explicit GroupRanking(size_t most_examples = kMostExamples) : most_examples_(most_examples) {}

  // A higher score means that the label 1 is more likely.
  void Add(uint64_t group, float score, bool positive);

  // Sorts what it keeps.
  GroupRankingFigures Figures();

 private:
  struct Example {
    uint64_t group = 0;  // its id's hash, a bijection
    float score = 0;
    bool positive = false;
  };

  // Whether the hash is in the range that is left, [0, 2^(64 - halvings_)).
  bool Takes(uint64_t hash) const {
    return halvings_ == 0 || (halvings_ <= 64 && hash >> (64 - halvings_) == 0);
  }

  // Adds the sums of a group, whose examples are ordered by their scores.
  static void AddGroup(absl::Span<const Example> group, GroupRankingFigures* figures);

  const size_t most_examples_;
  std::vector<Example> examples_;
  int halvings_ = 0;
  bool not_a_number_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_GROUP_RANKING_H_
