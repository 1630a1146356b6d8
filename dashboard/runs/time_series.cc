#include "dashboard/runs/time_series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace keelson {
namespace {

constexpr size_t kRememberedChanges = 16;
// Seconds since the epoch: tens of thousands of years.
constexpr double kLatestTime = 1e12;
// The first, the lowest, the highest and the last.
constexpr size_t kPointsOfPart = 4;

// Selects the points that stay of one part of a curve.
class PartSummary {
 public:
  void Take(uint32_t position, double value) {
    if (!first_.has_value()) first_ = position;
    last_ = position;
    if (!std::isfinite(value)) {
      if (!not_finite_.has_value()) not_finite_ = position;
      return;
    }
    if (!lowest_.has_value() || value < lowest_value_) {
      lowest_ = position;
      lowest_value_ = value;
    }
    if (!highest_.has_value() || value > highest_value_) {
      highest_ = position;
      highest_value_ = value;
    }
  }

  // Adds the selected points to `positions`, in the order in which they were added, and begins a
  // new part. `rank`: the order.
  template <typename Rank>
  void Flush(const Rank& rank, std::vector<uint32_t>* positions) {
    if (!first_.has_value()) return;
    std::vector<uint32_t> kept = {*first_, *last_};
    for (const auto& position : {lowest_, highest_, not_finite_}) {
      if (position.has_value()) kept.push_back(*position);
    }
    std::sort(kept.begin(), kept.end(), [&](uint32_t a, uint32_t b) {
      return rank(a) < rank(b) || (rank(a) == rank(b) && a < b);
    });
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    positions->insert(positions->end(), kept.begin(), kept.end());
    *this = PartSummary();
  }

 private:
  std::optional<uint32_t> first_, last_, lowest_, highest_, not_finite_;
  double lowest_value_ = 0;
  double highest_value_ = 0;
};

}  // namespace

void TimeSeries::Add(const SeriesPoint& point) {
  if (std::abs(point.time) < kLatestTime) added_.push_back(point);
}

void TimeSeries::Commit(uint64_t revision) {
  if (added_.empty()) return;
  std::stable_sort(added_.begin(), added_.end(), [](const SeriesPoint& a, const SeriesPoint& b) {
    return a.step != b.step ? a.step < b.step : a.time < b.time;
  });
  size_t kept = 0;
  for (size_t i = 0; i < added_.size(); ++i) {
    if (i + 1 < added_.size() && added_[i].step == added_[i + 1].step) continue;
    added_[kept++] = added_[i];
  }
  added_.resize(kept);
  Note(revision, added_.front().step);
  if (steps_.empty() || added_.front().step > steps_.back()) {
    bool in_order = true;
    for (const SeriesPoint& point : added_) in_order = Append(point) && in_order;
    if (!in_order) OrderByTime();
  } else {
    Merge();
  }
  added_.clear();
  added_.shrink_to_fit();
  if (steps_.size() > kMaxPoints) Thin();
}

bool TimeSeries::Append(const SeriesPoint& point) {
  const auto position = static_cast<uint32_t>(steps_.size());
  const bool in_order =
      position == 0 || point.time >= times_[by_time_.empty() ? position - 1 : by_time_.back()];
  steps_.push_back(point.step);
  times_.push_back(point.time);
  values_.push_back(point.value);
  if (!by_time_.empty()) by_time_.push_back(position);
  return in_order;
}

void TimeSeries::Merge() {
  const size_t begin =
      std::lower_bound(steps_.begin(), steps_.end(), added_.front().step) - steps_.begin();
  std::vector<SeriesPoint> tail;
  tail.reserve(steps_.size() - begin);
  for (size_t i = begin; i < steps_.size(); ++i) tail.push_back(at(i));
  steps_.resize(begin);
  times_.resize(begin);
  values_.resize(begin);
  const auto push = [&](const SeriesPoint& point) {
    steps_.push_back(point.step);
    times_.push_back(point.time);
    values_.push_back(point.value);
  };
  size_t old = 0;
  for (const SeriesPoint& point : added_) {
    while (old < tail.size() && tail[old].step < point.step) push(tail[old++]);
    const bool rival = old < tail.size() && tail[old].step == point.step;
    push(rival && tail[old].time > point.time ? tail[old] : point);
    if (rival) ++old;
  }
  while (old < tail.size()) push(tail[old++]);
  OrderByTime();
}

void TimeSeries::OrderByTime() {
  by_time_.clear();
  if (std::is_sorted(times_.begin(), times_.end())) return;
  by_time_.resize(times_.size());
  std::iota(by_time_.begin(), by_time_.end(), 0);
  std::stable_sort(by_time_.begin(), by_time_.end(),
                   [&](uint32_t a, uint32_t b) { return times_[a] < times_[b]; });
}

void TimeSeries::Note(uint64_t revision, int64_t from_step) {
  changes_.push_back({revision, from_step});
  if (changes_.size() <= kRememberedChanges) return;
  const int64_t forgotten = changes_.front().from_step;
  changes_.pop_front();
  changes_.front().from_step = std::min(changes_.front().from_step, forgotten);
}

int64_t TimeSeries::ChangedFrom(uint64_t revision) const {
  int64_t step = std::numeric_limits<int64_t>::max();
  for (const Change& change : changes_) {
    if (change.revision > revision) step = std::min(step, change.from_step);
  }
  return step;
}

void TimeSeries::Thin() {
  size_t total = 0;
  const std::vector<uint32_t> kept = Select(CurveAxis::kStep, {}, kMaxPoints / 2, &total);
  for (size_t i = 0; i < kept.size(); ++i) {
    steps_[i] = steps_[kept[i]];
    times_[i] = times_[kept[i]];
    values_[i] = values_[kept[i]];
  }
  steps_.resize(kept.size());
  times_.resize(kept.size());
  values_.resize(kept.size());
  OrderByTime();
}

double TimeSeries::Coordinate(CurveAxis axis, uint32_t position) const {
  return axis == CurveAxis::kStep ? static_cast<double>(steps_[position]) : times_[position];
}

uint32_t TimeSeries::PositionOf(CurveAxis axis, size_t n) const {
  return axis == CurveAxis::kTime && !by_time_.empty() ? by_time_[n] : static_cast<uint32_t>(n);
}

size_t TimeSeries::CountBelow(CurveAxis axis, double bound, bool inclusive) const {
  size_t low = 0;
  size_t high = size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const double coordinate = Coordinate(axis, PositionOf(axis, middle));
    const bool below = inclusive ? coordinate <= bound : coordinate < bound;
    (below ? low : high) = below ? middle + 1 : middle;
  }
  return low;
}

std::vector<uint32_t> TimeSeries::Select(CurveAxis axis, const CurveRange& range, size_t max_points,
                                         size_t* total) const {
  const size_t begin = range.from.has_value() ? CountBelow(axis, *range.from, false) : 0;
  const size_t end =
      std::max(begin, range.to.has_value() ? CountBelow(axis, *range.to, true) : size());
  *total = end - begin;
  std::vector<uint32_t> positions;
  if (*total <= max_points) {
    for (size_t n = begin; n < end; ++n) positions.push_back(PositionOf(axis, n));
    return positions;
  }
  const auto parts = static_cast<double>(std::max<size_t>(1, max_points / kPointsOfPart));
  const double first = Coordinate(axis, PositionOf(axis, begin));
  const double width = Coordinate(axis, PositionOf(axis, end - 1)) - first;
  const double parts_per_unit = width > 0 ? parts / width : 0;
  const auto rank = [&](uint32_t position) { return Coordinate(axis, position); };
  PartSummary summary;
  double current = 0;
  for (size_t n = begin; n < end; ++n) {
    const uint32_t position = PositionOf(axis, n);
    // The range's last point belongs to the last part.
    const double part = std::min(std::floor((rank(position) - first) * parts_per_unit), parts - 1);
    if (part != current) {
      summary.Flush(rank, &positions);
      current = part;
    }
    summary.Take(position, values_[position]);
  }
  summary.Flush(rank, &positions);
  return positions;
}

}  // namespace keelson
