#include "core/scoring/binary_ranking.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

namespace keelson {
namespace {

constexpr int kBinBits = 20;
constexpr uint32_t kSign = uint32_t{1} << 31;

// The first bits of the number in an order in which floats ascend.
size_t BinOf(float score) {
  const auto bits = std::bit_cast<uint32_t>(score);
  const uint32_t ascending = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return ascending >> (32 - kBinBits);
}

// The middle of the bin's scores. Beside an infinity there is none in its bin.
float MiddleOf(size_t bin) {
  constexpr int kLeftOut = 32 - kBinBits;
  const uint32_t ascending = static_cast<uint32_t>(bin) << kLeftOut | uint32_t{1} << (kLeftOut - 1);
  const bool negative = (ascending & kSign) == 0;
  const auto middle = std::bit_cast<float>(negative ? ~ascending : ascending ^ kSign);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (std::isnan(middle)) return negative ? -kInfinity : kInfinity;
  return middle;
}

double Rate(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

void BinaryRanking::Add(float score, bool positive) {
  if (std::isnan(score)) {
    not_a_number_ = true;
    return;
  }
  score += 0.0f;  // -0 becomes 0
  if (!bins_.empty()) return AddToBin(score, positive);
  (positive ? positive_scores_ : negative_scores_).push_back(score);
  const size_t examples = positive_scores_.size() + negative_scores_.size();
  if (examples > static_cast<size_t>(kExactScores)) MoveToBins();
}

void BinaryRanking::AddToBin(float score, bool positive) {
  Counts& bin = bins_[BinOf(score)];
  ++(positive ? bin.positives : bin.negatives);
}

void BinaryRanking::MoveToBins() {
  bins_.resize(size_t{1} << kBinBits);
  for (const float score : positive_scores_) AddToBin(score, true);
  for (const float score : negative_scores_) AddToBin(score, false);
  positive_scores_ = {};
  negative_scores_ = {};
}

std::vector<ScoreCounts> BinaryRanking::ByScore() const {
  if (not_a_number_) return {};
  if (bins_.empty()) return ExactCounts();
  std::vector<ScoreCounts> counts;
  for (size_t bin = bins_.size(); bin-- > 0;) {
    const Counts& here = bins_[bin];
    if (here.positives + here.negatives == 0) continue;
    counts.push_back({MiddleOf(bin), here.positives, here.negatives});
  }
  return counts;
}

std::vector<ScoreCounts> BinaryRanking::ExactCounts() const {
  std::vector<float> positives = positive_scores_;
  std::vector<float> negatives = negative_scores_;
  std::sort(positives.begin(), positives.end(), std::greater<>());
  std::sort(negatives.begin(), negatives.end(), std::greater<>());
  std::vector<ScoreCounts> counts;
  size_t p = 0;
  size_t n = 0;
  while (p < positives.size() || n < negatives.size()) {
    const bool next_is_positive =
        n == negatives.size() || (p < positives.size() && positives[p] > negatives[n]);
    const float score = next_is_positive ? positives[p] : negatives[n];
    ScoreCounts& here = counts.emplace_back();
    here.score = score;
    for (; p < positives.size() && positives[p] == score; ++p) ++here.positives;
    for (; n < negatives.size() && negatives[n] == score; ++n) ++here.negatives;
  }
  return counts;
}

RankingCurves RankingCurvesOf(absl::Span<const ScoreCounts> by_score) {
  ScoreCounts all;
  for (const ScoreCounts& here : by_score) {
    all.positives += here.positives;
    all.negatives += here.negatives;
  }
  RankingCurves curves;
  if (all.positives == 0 || all.negatives == 0) {
    curves.auc = curves.auc_pr = std::numeric_limits<double>::quiet_NaN();
    return curves;
  }
  std::vector<CurvePoint> roc = {{0, 0}};
  std::vector<CurvePoint> precision_recall = {{0, 1}};
  ScoreCounts above;
  for (const ScoreCounts& here : by_score) {
    above.positives += here.positives;
    above.negatives += here.negatives;
    roc.push_back({Rate(above.negatives, all.negatives), Rate(above.positives, all.positives)});
    const double precision = Rate(above.positives, above.positives + above.negatives);
    precision_recall.push_back({Rate(above.positives, all.positives), precision});
    curves.auc_pr += Rate(here.positives, all.positives) * precision;
  }
  curves.auc = AreaUnder(roc);
  curves.roc = ThinCurve(roc, RankingCurves::kMaxPoints);
  curves.precision_recall = ThinCurve(precision_recall, RankingCurves::kMaxPoints);
  return curves;
}

}  // namespace keelson
