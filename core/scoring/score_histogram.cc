#include "core/scoring/score_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace keelson {
namespace {

constexpr int64_t kPartBeyond = 1000;  // one of so many, at either end

// The score at which, from the first one on, one in kPartBeyond has been passed.
template <typename Iterator>
double End(Iterator begin, Iterator end, int64_t examples) {
  int64_t passed = 0;
  for (auto each = begin; each != end; ++each) {
    passed += each->all();
    if (passed > examples / kPartBeyond) return each->score;
  }
  return 0;
}

}  // namespace

std::vector<ScoreBin> ScoreHistogram(absl::Span<const ScoreCounts> by_score) {
  absl::Span<const ScoreCounts> finite = by_score;
  while (!finite.empty() && std::isinf(finite.front().score)) finite.remove_prefix(1);
  while (!finite.empty() && std::isinf(finite.back().score)) finite.remove_suffix(1);
  if (finite.empty()) return {};
  int64_t examples = 0;
  for (const ScoreCounts& here : finite) examples += here.all();
  const double high = End(finite.begin(), finite.end(), examples);
  const double low = End(finite.rbegin(), finite.rend(), examples);
  const int num_bins = low < high ? kScoreBins : 1;
  const double width = (high - low) / num_bins;
  std::vector<ScoreBin> bins;
  for (int i = 0; i < num_bins; ++i) {
    bins.push_back({.from = low + i * width, .to = low + (i + 1) * width});
  }
  for (const ScoreCounts& here : by_score) {
    const double place = width > 0 ? (here.score - low) / width : 0;
    ScoreBin& bin = bins[static_cast<size_t>(std::clamp(place, 0.0, num_bins - 1.0))];
    bin.negatives += here.negatives;
    bin.positives += here.positives;
  }
  return bins;
}

}  // namespace keelson
