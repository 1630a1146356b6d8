#ifndef KEELSON_CORE_SCORING_DIRECTION_H_
#define KEELSON_CORE_SCORING_DIRECTION_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace keelson {

enum class Direction { kLess, kMore, kToOne };

// What is better of a metric, by its name in an evaluation: less of "loss", "loss/<label>",
// "mean_squared_error", "mean_absolute_error" and "normalized_entropy", a smaller distance from 1
// of "calibration", more of all others.
Direction DirectionOf(absl::string_view metric);

// How much better a value of a metric is than another one; negative: it is worse.
double Gain(absl::string_view metric, double value, double than);

// Compares two values of a metric, wherever the best is shown, reported or exported: a value that
// is not finite is worse than any finite one (files have it as null); of equal ones neither is
// better.
bool IsBetter(absl::string_view metric, double value, double than);

struct BestValue {
  int64_t step = 0;
  double value = 0;
};
// Puts the value of a step into `best` if it is finite and better than what is there. When called
// in the order of the steps, the first of equal ones stays. `best` is empty if none was finite.
void TakeIfBest(absl::string_view metric, int64_t step, double value,
                std::optional<BestValue>* best);

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_DIRECTION_H_
