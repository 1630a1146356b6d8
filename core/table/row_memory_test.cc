#include "core/table/row_memory.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr size_t kPage = RowMemory::kPage;

TEST(RowMemoryTest, WhatIsAllocatedIsAlignedAndApart) {
  RowMemory memory;
  std::mt19937 random(1);
  std::map<char*, size_t> allocated;  // to the size
  for (int i = 0; i < 4000; ++i) {
    if (allocated.size() > 300) {
      auto freed = std::next(allocated.begin(), random() % allocated.size());
      // Nobody else has written there.
      for (size_t byte = 0; byte < freed->second; byte += 61) {
        ASSERT_EQ(freed->first[byte], static_cast<char>(freed->second / 64));
      }
      memory.Free(freed->first, freed->second);
      allocated.erase(freed);
    }
    const size_t bytes = random() % 2 == 0 ? (1 + random() % 80) * kPage : 64 * (1 + random() % 80);
    auto* const block = static_cast<char*>(memory.Allocate(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::memset(block, static_cast<char>(bytes / 64), bytes);
    ASSERT_TRUE(allocated.emplace(block, bytes).second);
  }
  for (const auto& [block, bytes] : allocated) memory.Free(block, bytes);
  EXPECT_EQ(memory.region_bytes(), 0u);
}

TEST(RowMemoryTest, FreedPagesAreUsedAgain) {
  RowMemory memory;
  std::vector<void*> blocks(RowMemory::kRegion / (4 * kPage));
  for (void*& block : blocks) block = memory.Allocate(4 * kPage);
  EXPECT_EQ(memory.region_bytes(), RowMemory::kRegion);
  memory.Free(blocks[100], 4 * kPage);
  memory.Free(blocks[101], 4 * kPage);
  EXPECT_EQ(memory.Allocate(8 * kPage), blocks[100]);
  EXPECT_EQ(memory.region_bytes(), RowMemory::kRegion);
  void* const another = memory.Allocate(kPage);
  EXPECT_EQ(memory.region_bytes(), 2 * RowMemory::kRegion);
  memory.Free(another, kPage);
  EXPECT_EQ(memory.region_bytes(), RowMemory::kRegion);
  memory.Free(blocks[100], 8 * kPage);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i != 100 && i != 101) memory.Free(blocks[i], 4 * kPage);
  }
  EXPECT_EQ(memory.region_bytes(), 0u);
}

TEST(RowMemoryTest, AHugePageThatIsFreeGoesBackToTheSystem) {
  RowMemory memory;
  auto* const kept = static_cast<char*>(memory.Allocate(kPage));
  auto* const block = static_cast<char*>(memory.Allocate(2 * RowMemory::kHugePage));
  std::memset(block, 1, 2 * RowMemory::kHugePage);
  memory.Free(block, 2 * RowMemory::kHugePage);
  auto* const again = static_cast<char*>(memory.Allocate(2 * RowMemory::kHugePage));
  ASSERT_EQ(again, block);
  // The system gives zeros; what shares a huge page with another block is still as it was.
  EXPECT_EQ(again[RowMemory::kHugePage], 0);
  EXPECT_EQ(again[0], 1);
  memory.Free(again, 2 * RowMemory::kHugePage);
  memory.Free(kept, kPage);
}

TEST(RowMemoryTest, LargeBlocksHaveTheirOwnMemory) {
  RowMemory memory;
  constexpr size_t kBytes = RowMemory::kRegion + kPage;
  auto* const block = static_cast<char*>(memory.Allocate(kBytes));
  ASSERT_NE(block, nullptr);
  block[0] = block[kBytes - 1] = 1;
  EXPECT_EQ(memory.region_bytes(), 0u);
  memory.Free(block, kBytes);
}

TEST(RowMemoryTest, MoreThanItMayGiveOutIsRefused) {
  RowMemory memory(10 * kPage);
  void* const pages = memory.Allocate(8 * kPage);
  void* const small = memory.Allocate(100);
  ASSERT_NE(pages, nullptr);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(memory.bytes(), 8 * kPage + 100);
  EXPECT_EQ(memory.Allocate(2 * kPage), nullptr);
  EXPECT_EQ(memory.bytes(), 8 * kPage + 100);
  memory.Free(pages, 8 * kPage);
  void* const again = memory.Allocate(9 * kPage);
  EXPECT_NE(again, nullptr);
  memory.Free(again, 9 * kPage);
  memory.Free(small, 100);
  EXPECT_EQ(memory.bytes(), 0u);
}

TEST(RowMemoryTest, MoreThanTheSystemHasIsRefused) {
  RowMemory memory;
  EXPECT_EQ(memory.Allocate(size_t{1} << 50), nullptr);
}

}  // namespace
}  // namespace keelson
