// The training loss over steps: means over fixed intervals. They do not depend on which workers
// computed the steps or on the order of the reports.
#ifndef KEELSON_CHIEF_COORDINATION_LOSS_CURVE_H_
#define KEELSON_CHIEF_COORDINATION_LOSS_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace keelson {

// One worker's steps come in order, so a job with one worker and one seed has the same points, to
// the last bit, in every run. Not thread-safe. Keeps the losses of intervals that are not complete,
// but at most kMaxKept: beyond that the latest steps are left out of their points.
class LossCurve {
 public:
  static constexpr size_t kMaxKept = size_t{1} << 18;

  // Mean loss of the steps since the point before, up to `step` completed steps.
  struct Point {
    int64_t step = 0;
    double loss = 0;
  };

  // Intervals end at the multiples of `interval` (> 0). Steps below `first_step` were done before.
  LossCurve(int64_t first_step, int64_t interval) : next_step_(first_step), interval_(interval) {}

  // A step was done. One that is reported again changes nothing.
  void Add(int64_t step, double loss);

  // The next interval of which every step was reported, or that ends at or below `done_below`: all
  // steps below that are done, although those of a predecessor's time are not reported here.
  // Returns nothing while there is no such interval.
  std::optional<Point> TakeComplete(int64_t done_below = 0);

  // The mean of what was reported after the last complete interval; for the end of a job.
  std::optional<Point> TakeRest();

 private:
  int64_t EndOfInterval() const { return (next_step_ / interval_ + 1) * interval_; }
  std::optional<Point> Take(int64_t end);

  int64_t next_step_;  // first step that no point covers
  const int64_t interval_;
  std::map<int64_t, double> losses_;  // by step, from next_step_
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_LOSS_CURVE_H_
