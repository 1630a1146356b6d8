#include "cli/data/summarize.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/data/columns/block_file.h"
#include "core/data/npz_blocks.h"
#include "core/data/parquet/parquet_blocks.h"

namespace keelson {
namespace {

// The format of a file that is read by blocks of columns. Empty: it is another one.
absl::StatusOr<std::string> BlockFormatOf(const RowFileOptions& options, FileSystem* file_system) {
  const std::string& format = options.format;
  if (!format.empty()) return format == kNpz || format == kParquet ? format : "";
  return FormatByContent(options.path, file_system);
}

absl::StatusOr<FileSummary> SummarizeBlocks(const std::string& path, const std::string& format,
                                            int64_t rows) {
  FileSummary summary;
  summary.format = format;
  ASSIGN_OR_RETURN(std::vector<FileColumn> columns,
                   format == kNpz ? ListNpzColumns(path) : ListParquetColumns(path));
  NeededColumns needed;
  for (FileColumn& column : columns) {
    if (column.unreadable.empty()) {
      needed.names.push_back(std::move(column.name));
      needed.needed_by.emplace_back("a column of the file");
    } else {
      summary.others.push_back(std::move(column));
    }
  }
  if (needed.names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a column that a model can take, found none"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<BlockFile> file,
                   format == kNpz ? OpenNpzBlocks(path, needed) : OpenParquetBlocks(path, needed));
  const std::vector<int64_t> blocks = file->block_records();
  summary.all_rows = std::accumulate(blocks.begin(), blocks.end(), int64_t{0});
  const int64_t wanted = rows == 0 ? summary.all_rows : std::min(rows, summary.all_rows);
  summary.names = std::move(needed.names);
  summary.columns.resize(summary.names.size());
  for (size_t i = 0; i < blocks.size() && summary.rows < wanted; ++i) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const ColumnBlock> block, file->Read(i));
    const auto count = static_cast<size_t>(std::min(blocks[i], wanted - summary.rows));
    for (size_t k = 0; k < summary.columns.size(); ++k) {
      for (size_t row = 0; row < count; ++row) {
        summary.columns[k].Add(block->columns[k].Value(row));
      }
    }
    summary.rows += static_cast<int64_t>(count);
  }
  return summary;
}

}  // namespace

absl::StatusOr<FileSummary> Summarize(const RowFileOptions& options, int64_t rows,
                                      FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::string blocks, BlockFormatOf(options, file_system));
  if (!blocks.empty()) return SummarizeBlocks(options.path, blocks, rows);
  ASSIGN_OR_RETURN(const std::unique_ptr<RowFile> file, RowFile::Open(options, file_system));
  FileSummary summary;
  summary.format = file->is_csv() ? kCsv : kTfRecord;
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
