#include "core/scoring/worst_examples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/types/span.h"

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

absl::Span<const float> NumbersOf(const FeatureValues& values, int64_t row) {
  const int64_t elements = values.numbers.shape().row_elements();
  return absl::MakeConstSpan(values.numbers.data() + row * elements, elements);
}

template <typename T>
std::vector<T> First(absl::Span<const T> values) {
  const absl::Span<const T> first = values.subspan(0, WorstExamples::kValues);
  return {first.begin(), first.end()};
}

ExampleValues ValuesOf(const FeatureValues& values, int64_t row) {
  if (values.ids.empty() && values.offsets.empty()) {
    const absl::Span<const float> numbers = NumbersOf(values, row);
    return {.numbers = First(numbers), .count = static_cast<int64_t>(numbers.size())};
  }
  const bool bag = !values.offsets.empty();
  const int64_t begin = bag ? values.offsets[row] : row;
  const int64_t count = bag ? values.offsets[row + 1] - begin : 1;
  ExampleValues found;
  found.count = count;
  found.ids = First(absl::MakeConstSpan(values.ids).subspan(begin, count));
  if (!values.weights.empty()) {
    found.weights = First(absl::MakeConstSpan(values.weights).subspan(begin, count));
  }
  return found;
}

// Whether there is one feature, and it is numbers.
bool HasNumbersAlone(const Batch& batch) {
  return batch.features.size() == 1 && batch.features[0].ids.empty() &&
         batch.features[0].offsets.empty();
}

}  // namespace

void WorstExamples::Add(WrongExample example, const Batch& batch, int64_t row) {
  if (std::isnan(example.badness)) example.badness = std::numeric_limits<double>::infinity();
  if (worst_.size() == kExamples) {
    if (!Worse(example, worst_.back())) return;
    worst_.pop_back();
  }
  if (HasNumbersAlone(batch)) {
    example.input = ToBytes(NumbersOf(batch.features[0], row));
  } else {
    for (const FeatureValues& values : batch.features) {
      example.features.push_back(ValuesOf(values, row));
    }
  }
  const auto place = std::upper_bound(worst_.begin(), worst_.end(), example, Worse);
  worst_.insert(place, std::move(example));
}

}  // namespace keelson
