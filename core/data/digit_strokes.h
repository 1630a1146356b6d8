// The pen's paths of handwritten digits, in several styles.
#ifndef KEELSON_CORE_DATA_DIGIT_STROKES_H_
#define KEELSON_CORE_DATA_DIGIT_STROKES_H_

#include <vector>

namespace keelson {

struct Point {
  float x = 0;
  float y = 0;
};

// A smooth path through its points; a corner ends one stroke and begins another.
using Stroke = std::vector<Point>;

// One way to write a digit, in the unit square, y downwards.
struct DigitStyle {
  std::vector<Stroke> strokes;
};

// Styles of `digit` (0 to 9), at least two.
const std::vector<DigitStyle>& DigitStyles(int digit);

// Points along the Catmull-Rom spline through `stroke`, `steps` for each span.
Stroke Smooth(const Stroke& stroke, int steps);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_DIGIT_STROKES_H_
