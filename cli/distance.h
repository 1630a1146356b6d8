// When numbers differ, and by how much.
#ifndef KEELSON_CLI_DISTANCE_H_
#define KEELSON_CLI_DISTANCE_H_

#include <algorithm>
#include <cmath>
#include <limits>

namespace keelson {

// |a - b|; 0 for two NaNs or two infinities of one sign, infinite when one alone is not finite.
inline long double Distance(long double a, long double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<long double>::infinity();
  return std::abs(a - b);
}

// Whether that is more than tolerance * max(1, |a|, |b|).
inline bool IsBeyond(double tolerance, long double distance, long double a, long double b) {
  if (std::isinf(distance)) return true;
  return distance > tolerance * std::max({1.0L, std::abs(a), std::abs(b)});
}

}  // namespace keelson

#endif  // KEELSON_CLI_DISTANCE_H_
