// The columns of Parquet files, in builds that have found Arrow's library.
#ifndef KEELSON_CORE_DATA_PARQUET_PARQUET_BLOCKS_H_
#define KEELSON_CORE_DATA_PARQUET_PARQUET_BLOCKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/data/columns/block_file.h"
#include "core/data/columns/file_columns.h"

namespace keelson {

// Opens a file, whose groups of rows are the blocks. Of a column
//   - booleans and whole numbers are integers, those of 64 bits without a sign from 2^63 on
//   negative
//     ones of the same bits;
//   - numbers of 32 and 64 bits are numbers;
//   - strings and bytes are texts;
//   - lists have any number of values of one of these kinds.
// A null is missing, and one within a list is none of its values.
// FAILED_PRECONDITION: the build has no Parquet. INVALID_ARGUMENT, naming the file: no such column,
// or one of another type. DATA_LOSS: it is no Parquet file, or is damaged. Others: those of opening
// a file.
absl::StatusOr<std::unique_ptr<BlockFile>> OpenParquetBlocks(const std::string& path,
                                                             const NeededColumns& needed);
// The columns that there are, in the file's order. Errors are those of OpenParquetBlocks.
absl::StatusOr<std::vector<FileColumn>> ListParquetColumns(const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_PARQUET_PARQUET_BLOCKS_H_
