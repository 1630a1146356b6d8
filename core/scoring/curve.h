// A curve as a polyline, for drawing.
#ifndef KEELSON_CORE_SCORING_CURVE_H_
#define KEELSON_CORE_SCORING_CURVE_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace keelson {

struct CurvePoint {
  double x = 0;
  double y = 0;
};

// Returns at most `max_points` (>= 2) of the points: the first, the last, and those at which the
// curve bends. Points on straight lines between others go first. x never falls.
//
// The polyline is refined where the area between it and the curve is largest, at the point farthest
// from it (as Douglas and Peucker do), so that 200 points keep the area under a curve in the unit
// square to less than 1e-3.
std::vector<CurvePoint> ThinCurve(absl::Span<const CurvePoint> points, size_t max_points);

// The area by the trapezoidal rule.
double AreaUnder(absl::Span<const CurvePoint> points);

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_CURVE_H_
