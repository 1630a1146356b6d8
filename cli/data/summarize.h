// Summaries of all columns of a file, text or not.
#ifndef KEELSON_CLI_DATA_SUMMARIZE_H_
#define KEELSON_CLI_DATA_SUMMARIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/data/column_summary.h"
#include "cli/data/row_file.h"
#include "core/base/file_system.h"
#include "core/data/columns/file_columns.h"

namespace keelson {

struct FileSummary {
  std::string format;    // "csv", "tf_record", "npz" or "parquet"
  int64_t rows = 0;      // that were read
  int64_t all_rows = 0;  // that the file has
  std::vector<std::string> names;
  std::vector<ColumnSummary> columns;  // each of `rows` rows
  std::vector<FileColumn> others;      // of an npz or Parquet file, which no model can take
};

// Sums up the first `rows` rows, and with 0 all of them. Of options.format also "npz" and "parquet"
// are known, and without it these files by how they begin. INVALID_ARGUMENT: RowFile::Open's; an
// npz or Parquet file has no column that a model can take. Others: those of the files' readers.
absl::StatusOr<FileSummary> Summarize(const RowFileOptions& options, int64_t rows,
                                      FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CLI_DATA_SUMMARIZE_H_
