#include "core/tensor/variable.h"

#include <cmath>
#include <numbers>

#include "core/base/random.h"

namespace keelson {
namespace {

float InitialValue(const Initializer& initializer, uint64_t seed, uint64_t stream,
                   int64_t element) {
  if (initializer.kind == Initializer::Kind::kConstant) return initializer.a;
  const auto bits = Philox(seed, stream, static_cast<uint64_t>(element));
  if (initializer.kind == Initializer::Kind::kUniform) {
    return initializer.a + (initializer.b - initializer.a) * UniformFloat(bits[0]);
  }
  // Box and Muller; 1 - u keeps the logarithm finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - UniformFloat(bits[0])));
  const double angle = 2.0 * std::numbers::pi * UniformFloat(bits[1]);
  return static_cast<float>(initializer.a + initializer.b * radius * std::cos(angle));
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
