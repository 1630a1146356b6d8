#include "core/scoring/direction.h"

#include <cmath>

#include "absl/strings/match.h"

namespace keelson {

bool HigherIsBetter(absl::string_view metric) {
  return metric != "loss" && !absl::StartsWith(metric, "loss/") && metric != "mean_squared_error" &&
         metric != "mean_absolute_error";
}

bool IsBetter(absl::string_view metric, double value, double than) {
  if (!std::isfinite(value) || !std::isfinite(than)) {
    return std::isfinite(value) && !std::isfinite(than);
  }
  return HigherIsBetter(metric) ? value > than : value < than;
}

void TakeIfBest(absl::string_view metric, int64_t step, double value,
                std::optional<BestValue>* best) {
  if (!std::isfinite(value)) return;
  if (!best->has_value() || IsBetter(metric, value, (*best)->value)) *best = {step, value};
}

}  // namespace keelson
