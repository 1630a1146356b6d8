#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/data/parquet/parquet_blocks.h"

namespace keelson {

namespace {

absl::Status NoParquet(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   ": expected a build that reads Parquet, found one without it: run "
                   "deploy/install_parquet.sh, and build again"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlockFile>> OpenParquetBlocks(const std::string& path,
                                                             const NeededColumns& needed) {
  return NoParquet(path);
}

absl::StatusOr<std::vector<FileColumn>> ListParquetColumns(const std::string& path) {
  return NoParquet(path);
}

}  // namespace keelson
