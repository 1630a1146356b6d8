#include "core/table/initial_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "core/base/random.h"
#include "core/table/row_id.h"
#include "core/table/uniform_row.h"

namespace keelson {
namespace {

constexpr size_t kWords = 4;  // of a result of Philox

struct NormalPair {
  double cosine;
  double sine;
};

// Two standard normal values. Box and Muller; 1 - u keeps the logarithm finite.
NormalPair Normal(uint32_t radius_bits, uint32_t angle_bits) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - UniformFloat(radius_bits)));
  const double angle = 2.0 * std::numbers::pi * UniformFloat(angle_bits);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

std::array<double, kWords> Normals(const std::array<uint32_t, kWords>& bits) {
  const NormalPair first = Normal(bits[0], bits[1]), second = Normal(bits[2], bits[3]);
  return {first.cosine, first.sine, second.cosine, second.sine};
}

double DrawnAgain(uint64_t key, uint64_t id, uint64_t element) {
  for (uint64_t draw = 1;; ++draw) {
    const auto bits = Philox(key, id, draw << 32 | element);
    for (const size_t first : {0, 2}) {
      const double value = Normal(bits[first], bits[first + 1]).cosine;
      if (std::abs(value) <= 2) return value;
    }
  }
}

// Calls write(first element, number of elements, their bits) for each four elements of a row.
template <typename Write>
void ForEachFour(uint64_t key, uint64_t id, size_t dim, Write write) {
  for (size_t first = 0; first < dim; first += kWords) {
    write(first, std::min(kWords, dim - first), Philox(key, id, first / kWords));
  }
}

}  // namespace

InitialRows::InitialRows(const Initializer& initializer, uint64_t seed, uint64_t salt)
    : initializer_(initializer), key_(MixId(seed, salt)) {}

void InitialRows::Fill(uint64_t id, absl::Span<float> out) const {
  const double a = initializer_.a, b = initializer_.b;
  switch (initializer_.kind) {
    case Initializer::Kind::kConstant:
      std::fill(out.begin(), out.end(), initializer_.a);
      return;
    case Initializer::Kind::kUniform:
      FillUniform(key_, id, initializer_.a, initializer_.b - initializer_.a, out);
      return;
    case Initializer::Kind::kNormal:
      ForEachFour(key_, id, out.size(), [&](size_t first, size_t count, const auto& bits) {
        const auto normals = Normals(bits);
        for (size_t i = 0; i < count; ++i) out[first + i] = static_cast<float>(a + b * normals[i]);
      });
      return;
    case Initializer::Kind::kTruncatedNormal:
      ForEachFour(key_, id, out.size(), [&](size_t first, size_t count, const auto& bits) {
        const auto normals = Normals(bits);
        for (size_t i = 0; i < count; ++i) {
          const double value =
              std::abs(normals[i]) <= 2 ? normals[i] : DrawnAgain(key_, id, first + i);
          out[first + i] = static_cast<float>(a + b * value);
        }
      });
      return;
  }
}

}  // namespace keelson
