// Summaries of all columns of a file.
#ifndef KEELSON_CLI_DATA_SUMMARIZE_H_
#define KEELSON_CLI_DATA_SUMMARIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/data/column_summary.h"
#include "cli/data/row_file.h"
#include "core/base/file_system.h"

namespace keelson {

struct FileSummary {
  bool csv = false;
  int64_t rows = 0;      // that were read
  int64_t all_rows = 0;  // that the file has
  std::vector<std::string> names;
  std::vector<ColumnSummary> columns;  // each of `rows` rows
};

// Sums up the first `rows` rows, and with 0 all of them.
absl::StatusOr<FileSummary> Summarize(const RowFileOptions& options, int64_t rows,
                                      FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CLI_DATA_SUMMARIZE_H_
