#include <string>

#include "core/data/parquet/parquet_blocks.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(NoParquetBlocksTest, SaysWhatInstallsIt) {
  const std::string message =
      "/d/a.parquet: expected a build that reads Parquet, found one without it: run "
      "deploy/install_parquet.sh, and build again";
  EXPECT_EQ(OpenParquetBlocks("/d/a.parquet", {}).status().message(), message);
  EXPECT_EQ(ListParquetColumns("/d/a.parquet").status().message(), message);
}

}  // namespace
}  // namespace keelson
