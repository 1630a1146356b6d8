#include "core/table/row_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "core/table/row_id.h"
#include "core/table/row_layout.h"
#include "core/table/row_memory.h"
#include "core/table/row_slab.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr uint64_t kSalt = 99;

// An index with rows that are nothing but their headers.
struct Rows {
  RowMemory memory;
  RowSlab slab{&memory, sizeof(RowHeader)};
  RowIndex index{&memory, &slab, kSalt};

  uint32_t Insert(uint64_t id) {
    const uint32_t number = slab.Allocate();
    *slab.Row(number) = {id, 0, 0, RowHeader::kLive};
    EXPECT_TRUE(index.Insert(index.Mix(id), number));
    return number;
  }
  void Erase(uint64_t id) {
    const uint32_t number = Find(id);
    index.Erase(index.Mix(id), number);
    slab.Free(number);
  }
  uint32_t Find(uint64_t id) const { return index.Find(id, index.Mix(id)); }
  // The share of searches for ids that are not there which have to go on to another group.
  double ShareThatGoesOn() const {
    std::mt19937_64 random(77);
    constexpr int kSearches = 100000;
    int go_on = 0;
    for (int i = 0; i < kSearches; ++i) {
      go_on += index.FirstGroup(index.Mix(random()))->overflow > 0;
    }
    return static_cast<double>(go_on) / kSearches;
  }
};

TEST(RowIndexTest, FindsWhatItHasWhileItGrows) {
  Rows rows;
  std::vector<uint32_t> numbers;
  EXPECT_EQ(rows.Find(0), RowSlab::kNoRow);
  for (uint64_t id = 0; id < 30000; ++id) {
    EXPECT_EQ(rows.Find(id), RowSlab::kNoRow);
    numbers.push_back(rows.Insert(id));
    ASSERT_EQ(rows.Find(id), numbers.back());
  }
  for (uint64_t id = 0; id < 30000; ++id) ASSERT_EQ(rows.Find(id), numbers[id]);
}

TEST(RowIndexTest, AnEntryTakesFewBytes) {
  Rows rows;
  double sum = 0, worst = 0;
  int samples = 0;
  for (uint64_t id = 0; id < 100000; ++id) {
    rows.Insert(id);
    if (id < 2000) continue;
    const double bytes = static_cast<double>(rows.index.bytes()) / static_cast<double>(id + 1);
    sum += bytes;
    worst = std::max(worst, bytes);
    ++samples;
  }
  EXPECT_LT(sum / samples, 8.5);
  EXPECT_LT(worst, 11);
}

TEST(RowIndexTest, WhatWasReservedIsTakenWithoutGrowing) {
  for (const uint64_t count : {1, 100, 2000, 3000, 39000, 100000}) {
    Rows rows;
    rows.index.Reserve(count);
    const size_t reserved = rows.index.bytes();
    std::vector<uint32_t> numbers;
    for (uint64_t id = 0; id < count; ++id) numbers.push_back(rows.Insert(id));
    for (uint64_t id = 0; id < count; ++id) ASSERT_EQ(rows.Find(id), numbers[id]);
    // Some segments get more than others, and grow.
    EXPECT_LT(rows.index.bytes(), reserved + reserved / 8 + 16 * sizeof(RowIndex::Group)) << count;
    Rows grown;
    for (uint64_t id = 0; id < count; ++id) grown.Insert(id);
    EXPECT_LT(rows.index.bytes(), grown.index.bytes() * 3 / 2) << count;
    for (uint64_t id = count; id < 3 * count; ++id) numbers.push_back(rows.Insert(id));
    for (uint64_t id = 0; id < 3 * count; ++id) ASSERT_EQ(rows.Find(id), numbers[id]);
  }
}

TEST(RowIndexTest, WithoutMemoryNothingIsReserved) {
  RowMemory memory(/*max_bytes=*/64 * 1024);
  RowSlab slab(&memory, sizeof(RowHeader));
  RowIndex index(&memory, &slab, kSalt);
  index.Reserve(100000);
  EXPECT_EQ(memory.bytes(), 0u);
  index.Reserve(1000);
  EXPECT_GT(memory.bytes(), 1000 * sizeof(uint32_t));
}

TEST(RowIndexTest, SteadyInsertionAndErasureDoesNotSlowSearches) {
  Rows churned;
  constexpr uint64_t kRows = 20000;
  for (uint64_t id = 0; id < kRows; ++id) churned.Insert(id);
  for (uint64_t id = kRows; id < 30 * kRows; ++id) {
    churned.Insert(id);
    churned.Erase(id - kRows);
  }
  Rows fresh;
  for (uint64_t id = 29 * kRows; id < 30 * kRows; ++id) fresh.Insert(id);
  EXPECT_LT(churned.ShareThatGoesOn(), fresh.ShareThatGoesOn() + 0.05);
  EXPECT_LT(churned.index.bytes(), fresh.index.bytes() * 16 / 10);
  for (uint64_t id = 29 * kRows; id < 30 * kRows; ++id) churned.Erase(id);
  EXPECT_EQ(churned.ShareThatGoesOn(), 0);
  EXPECT_LT(churned.index.bytes(), fresh.index.bytes() / 20);
}

TEST(RowIndexTest, AReplacedRowIsFound) {
  Rows rows;
  for (uint64_t id = 0; id < 100; ++id) rows.Insert(id);
  const uint32_t number = rows.slab.Allocate();
  *rows.slab.Row(number) = *rows.slab.Row(rows.Find(50));
  rows.index.Replace(rows.index.Mix(50), rows.Find(50), number);
  EXPECT_EQ(rows.Find(50), number);
}

uint64_t Unshift(uint64_t value, int shift) {
  uint64_t result = value;
  for (int i = shift; i < 64; i += shift) result = value ^ result >> shift;
  return result;
}

// The id whose mix is `mixed`.
uint64_t IdWithMix(uint64_t mixed) {
  constexpr uint64_t kInverse2 = 0x319642b2d24d8ec3, kInverse1 = 0x96de1b173f119089;
  uint64_t id = Unshift(mixed, 31) * kInverse2;
  id = Unshift(id, 27) * kInverse1;
  return Unshift(id, 30) ^ kSalt;
}

// Whoever knows the table's name can choose ids that meet in one place.
TEST(RowIndexTest, IdsThatAgreeInMostBitsAreKeptApart) {
  ASSERT_EQ(MixId(IdWithMix(0x123456789abcdef0), kSalt), 0x123456789abcdef0u);
  Rows rows;
  std::vector<uint64_t> ids;
  // One segment, however deep, and one group until there are 2^20 of them.
  for (uint64_t i = 0; i < 6000; ++i) ids.push_back(IdWithMix(i));
  // One group, until there are 2^32.
  for (uint64_t i = 0; i < 255; ++i) ids.push_back(IdWithMix(i << 32 | 0xffffffff));
  std::vector<uint32_t> numbers;
  for (const uint64_t id : ids) numbers.push_back(rows.Insert(id));
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(rows.Find(ids[i]), numbers[i]);
  for (const uint64_t id : ids) rows.Erase(id);
  for (const uint64_t id : ids) ASSERT_EQ(rows.Find(id), RowSlab::kNoRow);
  EXPECT_EQ(rows.ShareThatGoesOn(), 0);
}

}  // namespace
}  // namespace keelson
