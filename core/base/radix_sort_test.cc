#include "core/base/radix_sort.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

using Item = std::pair<uint64_t, size_t>;  // key, position at first

// Keys that differ in the bits of `mask` alone.
std::vector<Item> ItemsIn(uint64_t mask, size_t count) {
  std::mt19937_64 random(count);
  const uint64_t common = random() & ~mask;
  std::vector<Item> items;
  for (size_t i = 0; i < count; ++i) items.emplace_back(common | (random() & mask), i);
  return items;
}

TEST(RadixSortTest, SortsByTheKeyAndKeepsTheOrderOfEqualOnes) {
  for (const uint64_t mask : {uint64_t{0}, uint64_t{1}, uint64_t{0x7ff}, uint64_t{0xf0000f0},
                              uint64_t{0xffff} << 48, uint64_t{1} << 63, ~uint64_t{0}}) {
    for (const size_t count : {0, 1, 2, 1000}) {
      std::vector<Item> items = ItemsIn(mask, count), other, expected = items;
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Item& a, const Item& b) { return a.first < b.first; });
      RadixSort(
          mask, [](const Item& item) { return item.first; }, &items, &other);
      EXPECT_EQ(items, expected) << mask;
    }
  }
}

}  // namespace
}  // namespace keelson
