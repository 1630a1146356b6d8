// A stable sort by numbers of 64 bits, in as many passes as the bits in which they differ need.
// Source: Knuth, The Art of Computer Programming 3, 5.2.5, from the lowest digit on.
#ifndef KEELSON_CORE_BASE_RADIX_SORT_H_
#define KEELSON_CORE_BASE_RADIX_SORT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace keelson {

// Sorts `items` by key_of(item), ascending; items with the same key keep their order. The keys of
// any two items agree in all bits that are not set in `differing`. `other` is memory for as many
// items, whose content is undefined afterwards.
template <typename Item, typename KeyOf>
void RadixSort(uint64_t differing, KeyOf key_of, std::vector<Item>* items,
               std::vector<Item>* other) {
  constexpr int kBits = 11;
  constexpr uint64_t kDigits = uint64_t{1} << kBits;
  if (differing == 0) return;
  other->resize(items->size());
  for (int shift = std::countr_zero(differing); shift < 64; shift += kBits) {
    if ((differing >> shift & (kDigits - 1)) == 0) continue;
    const auto digit = [&](const Item& item) { return key_of(item) >> shift & (kDigits - 1); };
    std::array<size_t, kDigits> ends = {};
    for (const Item& item : *items) ++ends[digit(item)];
    size_t begin = 0;
    for (size_t& end : ends) begin += std::exchange(end, begin);
    for (const Item& item : *items) (*other)[ends[digit(item)]++] = item;
    std::swap(*items, *other);
  }
}

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_RADIX_SORT_H_
