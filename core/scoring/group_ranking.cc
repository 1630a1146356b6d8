#include "core/scoring/group_ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "absl/types/span.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

constexpr uint64_t kSalt = 0x67726f7570617563;  // any

}  // namespace

void GroupRanking::Add(uint64_t group, float score, bool positive) {
  if (std::isnan(score)) not_a_number_ = true;
  const uint64_t hash = MixId(group, kSalt);
  if (not_a_number_ || !Takes(hash)) return;
  examples_.push_back({hash, score, positive});
  while (examples_.size() > most_examples_) {
    ++halvings_;
    std::erase_if(examples_, [&](const Example& example) { return !Takes(example.group); });
  }
}

// The area is the share of the pairs of both labels that are in order; equal scores count a half.
void GroupRanking::AddGroup(absl::Span<const Example> group, GroupRankingFigures* figures) {
  int64_t positives = 0;
  int64_t negatives = 0;
  double in_order = 0;
  for (size_t begin = 0; begin < group.size();) {
    int64_t equal_positives = 0;
    int64_t equal_negatives = 0;
    size_t end = begin;
    for (; end < group.size() && group[end].score == group[begin].score; ++end) {
      ++(group[end].positive ? equal_positives : equal_negatives);
    }
    in_order += static_cast<double>(equal_positives) *
                (static_cast<double>(negatives) + static_cast<double>(equal_negatives) / 2);
    positives += equal_positives;
    negatives += equal_negatives;
    begin = end;
  }
  if (positives == 0 || negatives == 0) {
    ++figures->one_label_groups;
    return;
  }
  const double auc = in_order / static_cast<double>(positives) / static_cast<double>(negatives);
  figures->auc += auc * static_cast<double>(group.size());
  figures->mean_auc += auc;
  figures->examples += static_cast<int64_t>(group.size());
  ++figures->groups;
}

GroupRankingFigures GroupRanking::Figures() {
  std::sort(examples_.begin(), examples_.end(), [](const Example& a, const Example& b) {
    return std::tie(a.group, a.score) < std::tie(b.group, b.score);
  });
  GroupRankingFigures figures;
  figures.sampled = std::ldexp(1, -halvings_);
  for (size_t begin = 0; begin < examples_.size();) {
    size_t end = begin;
    while (end < examples_.size() && examples_[end].group == examples_[begin].group) ++end;
    AddGroup(absl::MakeConstSpan(examples_).subspan(begin, end - begin), &figures);
    begin = end;
  }
  if (not_a_number_ || figures.groups == 0) {
    figures.auc = figures.mean_auc = std::numeric_limits<double>::quiet_NaN();
    return figures;
  }
  figures.auc /= static_cast<double>(figures.examples);
  figures.mean_auc /= static_cast<double>(figures.groups);
  return figures;
}

}  // namespace keelson
