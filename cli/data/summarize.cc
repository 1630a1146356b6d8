#include "cli/data/summarize.h"

#include <algorithm>
#include <memory>

#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<FileSummary> Summarize(const RowFileOptions& options, int64_t rows,
                                      FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RowFile> file, RowFile::Open(options, file_system));
  FileSummary summary;
  summary.csv = file->is_csv();
  summary.all_rows = file->size();
  summary.rows = rows == 0 ? file->size() : std::min(rows, file->size());
  summary.columns.resize(file->names().size());
  for (int64_t row = 0; row < summary.rows; ++row) {
    RETURN_IF_ERROR(file->Read(row));
    // A column that comes later was missing before.
    while (summary.columns.size() < file->names().size()) {
      summary.columns.emplace_back();
      for (int64_t i = 0; i < row; ++i) summary.columns.back().Add(ColumnValue());
    }
    for (size_t i = 0; i < summary.columns.size(); ++i) summary.columns[i].Add(file->values()[i]);
  }
  summary.names = file->names();
  return summary;
}

}  // namespace keelson
