#include "core/tensor/fans.h"

#include <cmath>
#include <cstddef>

namespace keelson {
namespace {

// Added as doubles: the sum of two extents may be above 2^63.
double Sum(const Fans& fans) {
  return static_cast<double>(fans.in) + static_cast<double>(fans.out);
}

Initializer Uniform(double limit) {
  const auto high = static_cast<float>(limit);
  return {Initializer::Kind::kUniform, -high, high};
}

Initializer Normal(double stddev) {
  return {Initializer::Kind::kNormal, 0, static_cast<float>(stddev)};
}

}  // namespace

std::optional<Fans> FansOf(const Shape& kernel) {
  if (kernel.rank() < 2) return std::nullopt;
  const size_t inputs = kernel.rank() - 2;
  int64_t window = 1;
  for (size_t i = 0; i < inputs; ++i) window *= kernel.dim(i);
  return Fans{window * kernel.dim(inputs), window * kernel.dim(inputs + 1)};
}

Initializer GlorotUniform(const Fans& fans) { return Uniform(std::sqrt(6.0 / Sum(fans))); }

Initializer GlorotNormal(const Fans& fans) { return Normal(std::sqrt(2.0 / Sum(fans))); }

Initializer HeUniform(const Fans& fans) {
  return Uniform(std::sqrt(6.0 / static_cast<double>(fans.in)));
}

Initializer HeNormal(const Fans& fans) {
  return Normal(std::sqrt(2.0 / static_cast<double>(fans.in)));
}

}  // namespace keelson
