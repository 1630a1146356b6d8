#include "core/tensor/variable.h"

#include <cmath>
#include <numbers>

#include "core/base/random.h"

namespace keelson {
namespace {

// A normal value of mean 0. Box and Muller; 1 - u keeps the logarithm finite.
double Normal(double stddev, uint32_t radius_bits, uint32_t angle_bits) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - UniformFloat(radius_bits)));
  const double angle = 2.0 * std::numbers::pi * UniformFloat(angle_bits);
  return stddev * radius * std::cos(angle);
}

// A standard normal value within [-2, 2]. Each draw of an element has a stream of its own.
double TruncatedNormal(uint64_t seed, uint64_t stream, int64_t element) {
  for (uint64_t draw = 0;; ++draw) {
    const auto bits = Philox(seed, stream + draw, static_cast<uint64_t>(element));
    for (const size_t first : {0, 2}) {
      const double value = Normal(1, bits[first], bits[first + 1]);
      if (std::abs(value) <= 2) return value;
    }
  }
}

float InitialValue(const Initializer& initializer, uint64_t seed, uint64_t stream,
                   int64_t element) {
  if (initializer.kind == Initializer::Kind::kConstant) return initializer.a;
  if (initializer.kind == Initializer::Kind::kTruncatedNormal) {
    return static_cast<float>(initializer.a +
                              initializer.b * TruncatedNormal(seed, stream, element));
  }
  const auto bits = Philox(seed, stream, static_cast<uint64_t>(element));
  if (initializer.kind == Initializer::Kind::kUniform) {
    return initializer.a + (initializer.b - initializer.a) * UniformFloat(bits[0]);
  }
  return static_cast<float>(initializer.a + Normal(initializer.b, bits[0], bits[1]));
}

}  // namespace

void FillInitialValues(const VariableSpec& spec, uint64_t seed, int64_t first,
                       absl::Span<float> out) {
  const uint64_t stream = StableHash(spec.name);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = InitialValue(spec.initializer, seed, stream, first + static_cast<int64_t>(i));
  }
}

}  // namespace keelson
