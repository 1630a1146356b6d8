// What the optimizers' tests share.
#ifndef KEELSON_CORE_OPTIM_OPTIM_TESTING_H_
#define KEELSON_CORE_OPTIM_OPTIM_TESTING_H_

#include <google/protobuf/text_format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/optim/optimizer.h"
#include "gtest/gtest.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// A configuration from its text.
template <typename Config>
Config ParseAs(const std::string& text) {
  Config config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

inline std::unique_ptr<Optimizer> Create(const std::string& text) {
  return CreateOptimizer(ParseAs<v1::OptimizerConfig>(text)).value();
}

inline std::vector<float> RandomVector(size_t n, std::mt19937* random) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(n);
  for (float& e : x) e = normal(*random);
  return x;
}

inline std::vector<float> RandomVector(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  return RandomVector(n, &random);
}

inline std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_OPTIM_TESTING_H_
