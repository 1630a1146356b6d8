// The random numbers of a record that is generated.
#ifndef KEELSON_CORE_DATA_RECORD_RANDOM_H_
#define KEELSON_CORE_DATA_RECORD_RANDOM_H_

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/base/random.h"

namespace keelson {

inline constexpr float kPi = 3.14159265f;

// Which of two disjoint streams of records.
enum class DataSplit { kTrain, kEval };

// Numbers in a fixed order, which depend on (data set, seed, split, record) alone. Not thread-safe.
class RecordRandom {
 public:
  RecordRandom(absl::string_view data_set, uint64_t seed, DataSplit split, int64_t record)
      : key_(StableHash(data_set, seed)),
        stream_(static_cast<uint64_t>(record) << 1 | (split == DataSplit::kEval ? 1 : 0)) {}

  uint32_t Bits() {
    if (used_ == block_.size()) {
      block_ = Philox(key_, stream_, counter_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  float Uniform(float low, float high) { return low + (high - low) * UniformFloat(Bits()); }
  // Triangular around 0, within [-width, width].
  float Around(float width) {
    return Uniform(-width / 2, width / 2) + Uniform(-width / 2, width / 2);
  }
  // Below `n`, which is > 0.
  int Below(int n) { return static_cast<int>(UniformFloat(Bits()) * static_cast<float>(n)); }
  // A normal number of mean 0 and variance 1. Source: Box and Muller, "A note on the generation of
  // random normal deviates", Annals of Mathematical Statistics 29, 1958.
  float Normal() {
    const float radius = std::sqrt(-2 * std::log(1 - UniformFloat(Bits())));
    return radius * std::cos(2 * kPi * UniformFloat(Bits()));
  }

 private:
  const uint64_t key_;
  const uint64_t stream_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_;
  size_t used_ = 4;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_RANDOM_H_
