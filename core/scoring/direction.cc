#include "core/scoring/direction.h"

#include <cmath>

#include "absl/strings/match.h"

namespace keelson {

Direction DirectionOf(absl::string_view metric) {
  if (metric == "calibration") return Direction::kToOne;
  const bool less = metric == "loss" || absl::StartsWith(metric, "loss/") ||
                    metric == "mean_squared_error" || metric == "mean_absolute_error" ||
                    metric == "normalized_entropy";
  return less ? Direction::kLess : Direction::kMore;
}

double Gain(absl::string_view metric, double value, double than) {
  switch (DirectionOf(metric)) {
    case Direction::kLess:
      return than - value;
    case Direction::kToOne:
      return std::abs(than - 1) - std::abs(value - 1);
    case Direction::kMore:
      break;
  }
  return value - than;
}

bool IsBetter(absl::string_view metric, double value, double than) {
  if (!std::isfinite(value) || !std::isfinite(than)) {
    return std::isfinite(value) && !std::isfinite(than);
  }
  return Gain(metric, value, than) > 0;
}

void TakeIfBest(absl::string_view metric, int64_t step, double value,
                std::optional<BestValue>* best) {
  if (!std::isfinite(value)) return;
  if (!best->has_value() || IsBetter(metric, value, (*best)->value)) *best = {step, value};
}

}  // namespace keelson
