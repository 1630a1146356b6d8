#include "chief/coordination/loss_curve.h"

#include <iterator>

namespace keelson {

void LossCurve::Add(int64_t step, double loss) {
  if (step < next_step_) return;
  losses_.emplace(step, loss);
  if (losses_.size() > kMaxKept) losses_.erase(std::prev(losses_.end()));
}

std::optional<LossCurve::Point> LossCurve::TakeComplete(int64_t done_below) {
  while (true) {
    const int64_t end = EndOfInterval();
    const auto reported = std::distance(losses_.begin(), losses_.lower_bound(end));
    if (reported < end - next_step_ && end > done_below) return std::nullopt;
    if (reported > 0) return Take(end);
    next_step_ = end;
  }
}

std::optional<LossCurve::Point> LossCurve::TakeRest() {
  if (losses_.empty()) return std::nullopt;
  return Take(losses_.rbegin()->first + 1);
}

std::optional<LossCurve::Point> LossCurve::Take(int64_t end) {
  const auto stop = losses_.lower_bound(end);
  double sum = 0;
  int64_t count = 0;
  for (auto it = losses_.begin(); it != stop; ++it, ++count) sum += it->second;
  losses_.erase(losses_.begin(), stop);
  next_step_ = end;
  return Point{end, sum / static_cast<double>(count)};
}

}  // namespace keelson
