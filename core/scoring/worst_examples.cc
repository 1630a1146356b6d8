#include "core/scoring/worst_examples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace keelson {
namespace {

bool Worse(const WrongExample& a, const WrongExample& b) {
  return a.badness != b.badness ? a.badness > b.badness : a.record < b.record;
}

std::vector<uint8_t> ToBytes(absl::Span<const float> features) {
  std::vector<uint8_t> bytes;
  if (features.size() > WorstExamples::kMaxInputBytes) return bytes;
  bytes.reserve(features.size());
  for (const float value : features) {
    // Written so that not-a-number becomes 0.
    const float in_range = value > 0 ? std::min(value, 1.0f) : 0.0f;
    bytes.push_back(static_cast<uint8_t>(std::lround(in_range * 255)));
  }
  return bytes;
}

}  // namespace

void WorstExamples::Add(WrongExample example, absl::Span<const float> features) {
  if (std::isnan(example.badness)) example.badness = std::numeric_limits<double>::infinity();
  if (worst_.size() == kExamples) {
    if (!Worse(example, worst_.back())) return;
    worst_.pop_back();
  }
  example.input = ToBytes(features);
  const auto place = std::upper_bound(worst_.begin(), worst_.end(), example, Worse);
  worst_.insert(place, std::move(example));
}

}  // namespace keelson
