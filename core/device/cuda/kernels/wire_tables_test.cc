#include "core/device/cuda/kernels/wire_tables.h"

#include <gtest/gtest.h>

#include "testing/device/wire_codec_testing.h"

namespace keelson::cuda {
namespace {

TEST(WireTablesTest, Float32NeedsNone) {
  const auto tables = MakeWireTables(LayoutOf(WireFormat::kFloat32, {5000}));
  EXPECT_TRUE(tables.tiles.empty());
  EXPECT_TRUE(tables.blocks.empty());
}

TEST(WireTablesTest, TilesCoverEachBlockInOrder) {
  const auto tables = MakeWireTables(LayoutOf(WireFormat::kInt8, {3, 2049, 1024}));
  ASSERT_EQ(tables.tiles.size(), 5u);
  const WireTile expected[] = {{0, 0, 3, 0},
                               {3, 8, 1024, 1},
                               {1027, 8 + 1028, 1024, 1},
                               {2051, 8 + 2 * 1028, 1, 1},
                               {2052, 8 + 2 * 1028 + 8, 1024, 2}};
  for (size_t i = 0; i < tables.tiles.size(); ++i) {
    EXPECT_EQ(tables.tiles[i].first_element, expected[i].first_element) << i;
    EXPECT_EQ(tables.tiles[i].offset, expected[i].offset) << i;
    EXPECT_EQ(tables.tiles[i].num_elements, expected[i].num_elements) << i;
    EXPECT_EQ(tables.tiles[i].block, expected[i].block) << i;
  }
  EXPECT_TRUE(tables.blocks.empty());
}

TEST(WireTablesTest, ShortFormatsTakeTwoBytes) {
  const auto tables = MakeWireTables(LayoutOf(WireFormat::kFloat16, {1, 1025}));
  ASSERT_EQ(tables.tiles.size(), 3u);
  EXPECT_EQ(tables.tiles[1].offset, 4);
  EXPECT_EQ(tables.tiles[2].offset, 4 + 2048);
}

TEST(WireTablesTest, TopKKnowsItsBlocks) {
  const auto tables = MakeWireTables(LayoutOf(WireFormat::kTopK, {1500, 20}));
  ASSERT_EQ(tables.blocks.size(), 2u);
  EXPECT_EQ(tables.blocks[0].count, 150);
  EXPECT_EQ(tables.blocks[0].num_tiles, 2);
  EXPECT_EQ(tables.blocks[1].first_element, 1500);
  EXPECT_EQ(tables.blocks[1].num_elements, 20);
  EXPECT_EQ(tables.blocks[1].offset, static_cast<int64_t>(TopKBytes(150)));
  EXPECT_EQ(tables.blocks[1].first_tile, 2);
  EXPECT_EQ(tables.blocks[1].num_tiles, 1);
}

}  // namespace
}  // namespace keelson::cuda
