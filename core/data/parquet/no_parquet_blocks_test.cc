#include "core/base/file_system.h"
#include "core/data/parquet/parquet_blocks.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(NoParquetBlocksTest, SaysWhatInstallsIt) {
  v1::DataConfig data;
  data.mutable_parquet();
  const auto maker =
      RecordMaker::Create(data, {{{"x", {}, FeatureKind::kId}}, {}}, FileSystem::Real());
  ASSERT_TRUE(maker.ok()) << maker.status();
  EXPECT_EQ(OpenParquetBlocks("/d/a.parquet", **maker).status().message(),
            "/d/a.parquet: expected a build that reads Parquet, found one without it: run "
            "deploy/install_parquet.sh, and build again");
}

}  // namespace
}  // namespace keelson
