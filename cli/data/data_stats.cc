#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/data/column_summary.h"
#include "cli/data/convert.h"
#include "cli/data/data_commands.h"
#include "cli/data/summarize.h"
#include "cli/text_table.h"
#include "core/base/status_macros.h"
#include "core/data/columnar_file.h"

namespace keelson {
namespace {

std::string KindText(const ColumnSummary& column) {
  const std::string kind = column.values() == 0   ? "nothing"
                           : column.all_whole()   ? "whole"
                           : column.all_numbers() ? "number"
                                                  : "text";
  return column.has_lists() ? absl::StrCat("list of ", kind) : kind;
}

std::string Share(int64_t count, int64_t of) {
  return absl::StrFormat(
      "%.1f %%", of == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(of));
}

// The values of a column with few, or of one whose values come again.
std::string FrequentText(const ColumnSummary& column) {
  constexpr size_t kShown = 3, kLongest = 24;
  std::string text;
  for (const auto& [value, count] : column.Frequent(kShown)) {
    if (count == 1 && column.distinct() > kShown) break;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    absl::CHexEscape(absl::string_view(value).substr(0, kLongest)), " (",
                    Share(count, column.values()), ")");
  }
  return text;
}

}  // namespace

absl::Status PrintStatistics(const RowFileOptions& options, int64_t rows, FileSystem* file_system,
                             std::ostream* out) {
  ASSIGN_OR_RETURN(const bool columnar, IsColumnarFile(options.path, file_system));
  if (columnar) return DescribeColumnar(options.path, file_system, out);
  ASSIGN_OR_RETURN(const FileSummary summary, Summarize(options, rows, file_system));
  TextTable table;
  table.AddRow(
      {"column", "kind", "missing", "distinct", "min", "median", "max", "mean", "most frequent"});
  for (size_t i = 0; i < summary.names.size(); ++i) {
    const ColumnSummary& column = summary.columns[i];
    const bool numbers = column.all_numbers();
    const auto number = [&](double value) { return numbers ? absl::StrCat(value) : "-"; };
    table.AddRow({absl::CHexEscape(summary.names[i]), KindText(column),
                  Share(column.missing(), summary.rows),
                  absl::StrCat(column.distinct_is_exact() ? "" : "> ", column.distinct()),
                  number(column.min()), number(column.Quantile(0.5)), number(column.max()),
                  number(column.mean()), FrequentText(column)});
  }
  for (const FileColumn& column : summary.others) {
    table.AddRow({absl::CHexEscape(column.name), absl::StrCat("not read: ", column.unreadable), "-",
                  "-", "-", "-", "-", "-", ""});
  }
  *out << summary.rows << " rows of " << options.path << "\n" << table.ToString();
  return absl::OkStatus();
}

}  // namespace keelson
