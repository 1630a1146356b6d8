#include "core/table/row_slab.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "core/table/row_layout.h"
#include "core/table/row_memory.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

uint32_t AllocateLive(RowSlab* slab) {
  const uint32_t number = slab->Allocate();
  if (number == RowSlab::kNoRow) return number;
  *slab->Row(number) = {number, 0, 0, RowHeader::kLive};
  return number;
}

TEST(RowSlabTest, RowsAreApartAndKeepTheirPlaces) {
  RowMemory memory;
  for (const size_t stride : {size_t{32}, size_t{144}, size_t{4112}}) {
    RowSlab slab(&memory, stride);
    std::set<RowHeader*> addresses;
    std::vector<uint32_t> numbers;
    for (int i = 0; i < 3000; ++i) {
      numbers.push_back(AllocateLive(&slab));
      addresses.insert(slab.Row(numbers.back()));
    }
    EXPECT_EQ(slab.rows(), 3000u);
    for (const uint32_t number : numbers) EXPECT_EQ(slab.Row(number)->id, number);
    const RowHeader* last = nullptr;
    for (const RowHeader* row : addresses) {
      if (last != nullptr) {
        EXPECT_GE(reinterpret_cast<const char*>(row), reinterpret_cast<const char*>(last) + stride);
      }
      last = row;
    }
  }
}

TEST(RowSlabTest, LittleMemoryWaitsToBeUsed) {
  RowMemory memory;
  constexpr size_t kStride = 144;
  RowSlab slab(&memory, kStride);
  EXPECT_EQ(slab.bytes(), 0u);
  AllocateLive(&slab);
  EXPECT_LE(slab.bytes(), 4 * kStride + 100);
  double sum = 0;
  int samples = 0;
  for (int rows = 2; rows <= 100000; ++rows) {
    AllocateLive(&slab);
    if (rows < 2000) continue;
    const double over = static_cast<double>(slab.bytes()) / (rows * kStride);
    ASSERT_LT(over, 1.06) << rows;
    sum += over;
    ++samples;
  }
  EXPECT_LT(sum / samples, 1.022);
}

TEST(RowSlabTest, LowerPlacesAreFilledFirstAndEmptyChunksGivenBack) {
  RowMemory memory;
  RowSlab slab(&memory, 144);
  std::vector<uint32_t> numbers;
  for (int i = 0; i < 50000; ++i) numbers.push_back(AllocateLive(&slab));
  const size_t full = slab.bytes();
  for (size_t i = 10000; i < numbers.size(); ++i) slab.Free(numbers[i]);
  EXPECT_LT(slab.bytes(), full / 4);
  for (size_t i = 0; i < 100; ++i) slab.Free(numbers[i * 7]);
  for (int i = 0; i < 100; ++i) EXPECT_LT(AllocateLive(&slab), 1000u);
  for (int i = 0; i < 40000; ++i) AllocateLive(&slab);
  EXPECT_LE(slab.bytes(), full + full / 100);
}

TEST(RowSlabTest, ARowThatComesAndGoesKeepsItsChunk) {
  RowMemory memory;
  RowSlab slab(&memory, 144);
  const uint32_t number = AllocateLive(&slab);
  RowHeader* const row = slab.Row(number);
  slab.Free(number);
  EXPECT_EQ(AllocateLive(&slab), number);
  EXPECT_EQ(slab.Row(number), row);
}

TEST(RowSlabTest, VisitsAllLiveRowsInSlices) {
  RowMemory memory;
  RowSlab slab(&memory, 48);
  std::mt19937 random(5);
  std::set<uint32_t> live;
  for (int i = 0; i < 20000; ++i) {
    if (!live.empty() && random() % 3 == 0) {
      const auto freed = live.lower_bound(random() % (*live.rbegin() + 1));
      slab.Free(*freed);
      live.erase(freed);
    } else {
      ASSERT_TRUE(live.insert(AllocateLive(&slab)).second);
    }
  }
  for (const size_t places : {size_t{1}, size_t{7}, size_t{1000000}}) {
    std::set<uint32_t> seen;
    uint64_t next = 0;
    bool more = true;
    while (more) {
      size_t calls = 0;
      more = slab.VisitLive(&next, places, [&](uint32_t number, const RowHeader* row) {
        ++calls;
        EXPECT_EQ(row->id, number);
        EXPECT_TRUE(seen.insert(number).second);
      });
      ASSERT_LE(calls, places);
    }
    EXPECT_EQ(seen, live);
  }
  for (uint32_t number = 0; number < 20000; ++number) {
    EXPECT_EQ(slab.LiveRow(number) != nullptr, live.count(number) == 1) << number;
  }
  EXPECT_EQ(slab.LiveRow(RowSlab::kNoRow), nullptr);
}

TEST(RowSlabTest, NumbersEndWhereItIsSaid) {
  RowMemory memory;
  RowSlab slab(&memory, 32, /*max_numbers=*/1001);
  std::vector<uint32_t> numbers;
  for (int i = 0; i < 1001; ++i) numbers.push_back(AllocateLive(&slab));
  EXPECT_EQ(std::set<uint32_t>(numbers.begin(), numbers.end()).size(), 1001u);
  EXPECT_LT(*std::max_element(numbers.begin(), numbers.end()), 1001u);
  EXPECT_TRUE(slab.full());
  EXPECT_EQ(slab.Allocate(), RowSlab::kNoRow);
  slab.Free(500);
  EXPECT_FALSE(slab.full());
  EXPECT_EQ(slab.Allocate(), 500u);
}

#ifndef NDEBUG
TEST(RowSlabTest, AFreedRowIsOverwritten) {
  RowMemory memory;
  RowSlab slab(&memory, 32);
  AllocateLive(&slab);
  const uint32_t number = AllocateLive(&slab);
  slab.Row(number)->values()[0] = 1;
  const RowHeader* const row = slab.Row(number);
  slab.Free(number);
  EXPECT_EQ(row->id, 0xdbdbdbdbdbdbdbdb);
  EXPECT_LT(row->values()[0], -1e16f);
}
#endif

}  // namespace
}  // namespace keelson
