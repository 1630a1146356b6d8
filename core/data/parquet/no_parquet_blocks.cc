#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/data/parquet/parquet_blocks.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<BlockFile>> OpenParquetBlocks(const std::string& path,
                                                             const RecordMaker& maker) {
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   ": expected a build that reads Parquet, found one without it: run "
                   "deploy/install_parquet.sh, and build again"));
}

}  // namespace keelson
