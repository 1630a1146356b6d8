#include "core/scoring/curve.h"

#include <cmath>
#include <queue>
#include <set>

namespace keelson {
namespace {

// The points from `begin` to `end`, drawn as one straight line.
struct Segment {
  size_t begin = 0;
  size_t end = 0;
  size_t farthest = 0;  // the point that is farthest from the line
  double area = 0;      // between the line and the curve

  bool operator<(const Segment& other) const { return area < other.area; }
};

Segment Measure(absl::Span<const CurvePoint> points, size_t begin, size_t end) {
  Segment segment{begin, end, begin, 0};
  const CurvePoint& first = points[begin];
  const double dx = points[end].x - first.x;
  if (dx <= 0) return segment;
  const double slope = (points[end].y - first.y) / dx;
  double previous = 0;
  double largest = 0;
  for (size_t i = begin + 1; i <= end; ++i) {
    const double distance =
        i == end ? 0 : std::abs(points[i].y - first.y - slope * (points[i].x - first.x));
    segment.area += (previous + distance) / 2 * (points[i].x - points[i - 1].x);
    if (distance > largest) {
      largest = distance;
      segment.farthest = i;
    }
    previous = distance;
  }
  return segment;
}

}  // namespace

std::vector<CurvePoint> ThinCurve(absl::Span<const CurvePoint> points, size_t max_points) {
  if (points.size() <= 2) return {points.begin(), points.end()};
  // A fraction of the unit square; smaller areas are due to rounding.
  constexpr double kNoArea = 1e-12;
  std::set<size_t> kept = {0, points.size() - 1};
  std::priority_queue<Segment> segments;
  segments.push(Measure(points, 0, points.size() - 1));
  while (!segments.empty() && kept.size() < max_points) {
    const Segment widest = segments.top();
    segments.pop();
    if (widest.area < kNoArea || widest.farthest == widest.begin) continue;
    kept.insert(widest.farthest);
    segments.push(Measure(points, widest.begin, widest.farthest));
    segments.push(Measure(points, widest.farthest, widest.end));
  }
  std::vector<CurvePoint> thinned;
  thinned.reserve(kept.size());
  for (const size_t position : kept) thinned.push_back(points[position]);
  return thinned;
}

double AreaUnder(absl::Span<const CurvePoint> points) {
  double area = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    area += (points[i].y + points[i - 1].y) / 2 * (points[i].x - points[i - 1].x);
  }
  return area;
}

}  // namespace keelson
