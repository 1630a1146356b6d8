// A file of columns that is read block by block, such as a Parquet file by its groups of rows.
#ifndef KEELSON_CORE_DATA_COLUMNS_BLOCK_FILE_H_
#define KEELSON_CORE_DATA_COLUMNS_BLOCK_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/data/columns/column_block.h"
#include "core/data/columns/file_columns.h"

namespace keelson {

// Immutable; any number of threads may use it together.
class BlockFile {
 public:
  virtual ~BlockFile() = default;

  virtual const std::string& path() const = 0;
  // How many records each block has.
  virtual std::vector<int64_t> block_records() const = 0;
  // The columns that the file was opened for, of the records of a block. Errors name the file.
  virtual absl::StatusOr<std::shared_ptr<const ColumnBlock>> Read(size_t block) const = 0;
  // FAILED_PRECONDITION: the file is another one than that which was opened, or is gone.
  virtual absl::Status CheckUnchanged() const = 0;
};

// The error of a file that has not the column `column` of `needed`, but those of `names`.
absl::Status NoSuchColumn(const std::string& path, const NeededColumns& needed, size_t column,
                          const std::vector<std::string>& names);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_BLOCK_FILE_H_
