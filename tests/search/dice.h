// Numbers that a seed determines.
#ifndef KEELSON_TESTS_SEARCH_DICE_H_
#define KEELSON_TESTS_SEARCH_DICE_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace keelson {

// Not thread-safe.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed * 2 + 1) {}

  // In [low, high].
  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  absl::Duration Milliseconds(int64_t low, int64_t high) {
    return absl::Milliseconds(Roll(low, high));
  }
  // Once in `times`.
  bool OnceIn(int64_t times) { return Roll(1, times) == 1; }
  // In [0, count), which is not 0.
  size_t Index(size_t count) {
    return static_cast<size_t>(Roll(0, static_cast<int64_t>(count) - 1));
  }
  template <typename T>
  const T& Pick(const std::vector<T>& of) {
    return of[Index(of.size())];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_DICE_H_
