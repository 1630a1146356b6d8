// Vectors of float32 for tests of codecs.
#ifndef KEELSON_CORE_WIRE_VALUE_CODEC_TESTING_H_
#define KEELSON_CORE_WIRE_VALUE_CODEC_TESTING_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace keelson {

// Normally distributed, of variance 1.
inline std::vector<float> RandomVector(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(n);
  for (float& e : x) e = normal(random);
  return x;
}

// Random bits: every exponent, infinities, NaNs, subnormals.
inline std::vector<float> RandomBits(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (float& e : x) e = std::bit_cast<float>(static_cast<uint32_t>(random()));
  return x;
}

inline std::vector<uint32_t> Bits(const std::vector<float>& x) {
  std::vector<uint32_t> bits;
  for (const float e : x) bits.push_back(std::bit_cast<uint32_t>(e));
  return bits;
}

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_VALUE_CODEC_TESTING_H_
