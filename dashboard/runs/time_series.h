// A curve of a run: values by step, each with its time.
#ifndef KEELSON_DASHBOARD_RUNS_TIME_SERIES_H_
#define KEELSON_DASHBOARD_RUNS_TIME_SERIES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace keelson {

struct SeriesPoint {
  int64_t step = 0;
  double time = 0;   // seconds since the epoch
  double value = 0;  // may be not finite

  friend bool operator==(const SeriesPoint&, const SeriesPoint&) = default;
};

enum class CurveAxis { kStep, kTime };

// A range that includes both ends.
struct CurveRange {
  std::optional<double> from;
  std::optional<double> to;
};

// Ordered by step, with one point per step: the newest by time, and of two with the same time the
// one added later. Not thread-safe. A point takes 24 bytes; a curve that has become longer than
// kMaxPoints is thinned to half of that, extremes stay.
class TimeSeries {
 public:
  static constexpr size_t kMaxPoints = size_t{1} << 21;

  // Adds a point, which becomes visible with the next Commit. A point with an invalid time is
  // ignored.
  void Add(const SeriesPoint& point);
  // `revision` grows from call to call.
  void Commit(uint64_t revision);

  size_t size() const { return steps_.size(); }
  SeriesPoint at(size_t i) const { return {steps_[i], times_[i], values_[i]}; }
  // The revision of the last Commit that had points; 0: none.
  uint64_t revision() const { return changes_.empty() ? 0 : changes_.back().revision; }
  // A step such that all points added after `revision` have it or a later one; earlier points may,
  // too.
  int64_t ChangedFrom(uint64_t revision) const;

  // Positions of the points in a range, in the order of `axis`: all of them if they are at most
  // `max_points`; otherwise the range is divided into equal parts along the axis, and each part
  // keeps its first, lowest, highest and last point, and its first value that is not finite.
  // `total`: how many are in the range.
  std::vector<uint32_t> Select(CurveAxis axis, const CurveRange& range, size_t max_points,
                               size_t* total) const;

 private:
  struct Change {
    uint64_t revision = 0;
    int64_t from_step = 0;
  };

  // False: its time is before that of the last point.
  bool Append(const SeriesPoint& point);
  // `added_` is sorted, a step once.
  void Merge();
  void Note(uint64_t revision, int64_t from_step);
  void OrderByTime();
  void Thin();
  double Coordinate(CurveAxis axis, uint32_t position) const;
  // The position of the n-th point along the axis.
  uint32_t PositionOf(CurveAxis axis, size_t n) const;
  // The number of points before `bound`, or up to it.
  size_t CountBelow(CurveAxis axis, double bound, bool inclusive) const;

  std::vector<int64_t> steps_;
  std::vector<double> times_;
  std::vector<double> values_;
  // Positions in order of time; empty: that of the steps.
  std::vector<uint32_t> by_time_;
  std::vector<SeriesPoint> added_;
  std::deque<Change> changes_;  // the newest ones
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_TIME_SERIES_H_
