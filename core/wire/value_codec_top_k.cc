#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <functional>
#include <vector>

#include "core/wire/value_codec.h"

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/wire/value_codec_top_k.cc"
#include "hwy/foreach_target.h"
#include "core/wire/element_vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

// Magnitudes compare as their bits, the sign's removed, do; a NaN is larger than all others.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> MagnitudeBits(D d, const float* x) {
  return hn::BitCast(hn::RebindToSigned<D>(), hn::Abs(hn::LoadU(d, x)));
}

void AddArrays(const float* from, size_t n, float* to) {
  ForEachVector(n, [=](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, from + i), hn::LoadU(d, to + i)), d, to + i);
  });
}

// Writes those magnitudes among n whose bits under `mask` are `bits` to `to`, in order. `to` has
// room for a vector more than they take.
void CollectMagnitudes(const float* x, size_t n, int32_t mask, int32_t bits, int32_t* to) {
  size_t count = 0;
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    const auto magnitudes = MagnitudeBits(d, x + i);
    const auto chosen = hn::Eq(hn::And(magnitudes, hn::Set(di, mask)), hn::Set(di, bits));
    hn::StoreU(hn::Compress(magnitudes, chosen), di, to + count);
    count += hn::CountTrue(di, chosen);
  });
}

// Writes the positions, counted from `first`, of magnitudes above `limit`; returns their number.
size_t CollectPositions(const float* x, size_t n, int32_t limit, int32_t first, int32_t* to) {
  size_t count = 0;
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    const auto chosen = hn::Gt(MagnitudeBits(d, x + i), hn::Set(di, limit));
    if (hn::AllFalse(di, chosen)) return;
    const auto positions = hn::Iota(di, first + static_cast<int32_t>(i));
    hn::StoreU(hn::Compress(positions, chosen), di, to + count);
    count += hn::CountTrue(di, chosen);
  });
  return count;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(AddArrays);
HWY_EXPORT(CollectMagnitudes);
HWY_EXPORT(CollectPositions);

// Lanes of int32 in the largest vector of any instruction set, 2048 bits.
constexpr size_t kMaxLanes = 64;

// Magnitudes are counted by their exponent and the first 3 bits after it.
constexpr int kBucketShift = 20;
constexpr int32_t kBucketMask = int32_t{0x7fffffff} >> kBucketShift << kBucketShift;
constexpr size_t kNumBuckets = size_t{1} << (31 - kBucketShift);

// The elements to keep: all magnitudes above `threshold`, and the first `ties` of those equal to
// it.
struct Selection {
  int32_t threshold;
  size_t ties;
};

struct Bucket {
  int32_t index;
  size_t size;
  size_t above;  // elements in higher buckets
};

int32_t MagnitudeBits(float x) { return std::bit_cast<int32_t>(x) & 0x7fffffff; }

std::vector<uint32_t> CountBuckets(absl::Span<const float> x) {
  // Neighbours are counted in two tables, as additions to one counter wait for each other.
  std::vector<uint32_t> even(kNumBuckets), odd(kNumBuckets);
  size_t i = 0;
  for (; i + 2 <= x.size(); i += 2) {
    ++even[MagnitudeBits(x[i]) >> kBucketShift];
    ++odd[MagnitudeBits(x[i + 1]) >> kBucketShift];
  }
  if (i < x.size()) ++even[MagnitudeBits(x[i]) >> kBucketShift];
  std::transform(even.begin(), even.end(), odd.begin(), even.begin(), std::plus<>());
  return even;
}

// The bucket of the magnitude at `rank`, from 1, in descending order.
Bucket BucketOfRank(const std::vector<uint32_t>& counts, size_t rank) {
  size_t bucket = counts.size() - 1, above = 0;
  for (; above + counts[bucket] < rank; --bucket) above += counts[bucket];
  return {static_cast<int32_t>(bucket), counts[bucket], above};
}

Selection SelectLargest(absl::Span<const float> x, size_t count) {
  const Bucket bucket = BucketOfRank(CountBuckets(x), count);
  std::vector<int32_t> magnitudes(bucket.size + kMaxLanes);
  HWY_DYNAMIC_DISPATCH(CollectMagnitudes)
  (x.data(), x.size(), kBucketMask, bucket.index << kBucketShift, magnitudes.data());
  magnitudes.resize(bucket.size);
  const size_t kept = count - bucket.above;
  const auto last = magnitudes.begin() + static_cast<ptrdiff_t>(kept) - 1;
  std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<>());
  const size_t larger =
      std::count_if(magnitudes.begin(), last, [&](int32_t m) { return m > *last; });
  return {*last, kept - larger};
}

// Where EncodeTopK writes the next element.
struct Output {
  uint8_t* position;
  uint8_t* element;

  void Write(int32_t at, float x) {
    std::memcpy(position, &at, sizeof(at));
    std::memcpy(element, &x, sizeof(x));
    position += sizeof(at);
    element += sizeof(x);
  }
};

// Writes the selected elements of x and leaves 0 in their place.
void TakeSelected(Selection selection, absl::Span<float> x, Output output) {
  constexpr size_t kChunk = 4096;
  int32_t positions[kChunk + kMaxLanes];
  for (size_t begin = 0; begin < x.size(); begin += kChunk) {
    const size_t n = HWY_DYNAMIC_DISPATCH(CollectPositions)(
        x.data() + begin, std::min(kChunk, x.size() - begin), selection.threshold - 1,
        static_cast<int32_t>(begin), positions);
    for (const int32_t at : absl::MakeConstSpan(positions, n)) {
      float& element = x[at];
      if (MagnitudeBits(element) == selection.threshold) {
        if (selection.ties == 0) continue;
        --selection.ties;
      }
      output.Write(at, element);
      element = 0;
    }
  }
}

}  // namespace

void EncodeTopK(absl::Span<const float> from, int64_t count, absl::Span<float> residual,
                std::string* to) {
  HWY_DYNAMIC_DISPATCH(AddArrays)(from.data(), from.size(), residual.data());
  const Selection selection = SelectLargest(residual, count);
  const size_t begin = to->size();
  to->resize(begin + TopKBytes(count));
  auto* const out = reinterpret_cast<uint8_t*>(to->data()) + begin;
  const auto written_count = static_cast<uint32_t>(count);
  std::memcpy(out, &written_count, sizeof(written_count));
  uint8_t* const positions = out + sizeof(written_count);
  TakeSelected(selection, residual, {positions, positions + count * sizeof(uint32_t)});
}

}  // namespace keelson
#endif  // HWY_ONCE
