#include "core/table/row_id.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr uint64_t kWeyl = 0x9e3779b97f4a7c15;  // of splitmix64, which the finaliser is part of

TEST(RowIdTest, TheMixIsThatOfSplitmix64) {
  // What the published program gives for the seed 1234567, and for 0.
  constexpr uint64_t kSeed = 1234567;
  EXPECT_EQ(MixId(kSeed + kWeyl, 0), 6457827717110365317u);
  EXPECT_EQ(MixId(kSeed + 2 * kWeyl, 0), 3203168211198807973u);
  EXPECT_EQ(MixId(kWeyl, 0), 0xe220a8397b1dcdafu);
}

TEST(RowIdTest, WhatIsStoredIsFoundByEveryLaterBuild) {
  const uint64_t salt = TableSalt("users");
  EXPECT_EQ(salt, 0x42288471628c3333u);
  const std::vector<uint64_t> ids = {0, 1, uint64_t{1} << 63, ~uint64_t{0} - 1, ~uint64_t{0}};
  std::vector<uint32_t> partitions;
  for (const uint64_t id : ids) partitions.push_back(RowPartitionOf(MixId(id, salt)));
  EXPECT_EQ(partitions, (std::vector<uint32_t>{251, 29, 41, 205, 129}));
}

TEST(RowIdTest, IdsWithPatternsSpreadEvenly) {
  for (const uint64_t stride : {uint64_t{1}, uint64_t{256}, uint64_t{1024}, uint64_t{1} << 40}) {
    std::vector<int> rows(kRowPartitions);
    for (uint64_t i = 0; i < 256 * 1000; ++i)
      ++rows[RowPartitionOf(MixId(i * stride, TableSalt("t")))];
    // The standard deviation is 32.
    EXPECT_GT(*std::min_element(rows.begin(), rows.end()), 1000 - 160) << stride;
    EXPECT_LT(*std::max_element(rows.begin(), rows.end()), 1000 + 160) << stride;
  }
}

TEST(RowIdTest, ATablesPartitionsSayNothingAboutAnothers) {
  int together = 0;
  for (uint64_t id = 0; id < 25600; ++id) {
    together +=
        RowPartitionOf(MixId(id, TableSalt("a"))) == RowPartitionOf(MixId(id, TableSalt("b")));
  }
  EXPECT_NEAR(together, 100, 50);
}

TEST(RowIdTest, ShardsHaveRunsBehindEachOther) {
  for (const size_t shards : {1, 2, 3, 7, 256, 300}) {
    uint32_t end = 0;
    for (size_t shard = 0; shard < shards; ++shard) {
      const RowPartitionRun run = RowPartitionsOfShard(shard, shards);
      EXPECT_EQ(run.first, end);
      EXPECT_NEAR(run.count, 256.0 / static_cast<double>(shards), 1);
      end = run.first + run.count;
    }
    EXPECT_EQ(end, kRowPartitions);
  }
}

}  // namespace
}  // namespace keelson
