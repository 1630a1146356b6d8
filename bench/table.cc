#include "bench/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace keelson::bench {
namespace {

using Row = std::vector<std::string>;

std::vector<size_t> Widths(const Table& table) {
  std::vector<size_t> widths;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t width = table.columns[c].size();
    for (const Row& row : table.rows) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  return widths;
}

std::string Line(const Row& row, const std::vector<size_t>& widths, TableStyle style) {
  const bool markdown = style == TableStyle::kMarkdown;
  std::string line = markdown ? "| " : "";
  for (size_t c = 0; c < row.size(); ++c) {
    if (c > 0) line += markdown ? " | " : "  ";
    const std::string padding(widths[c] - row[c].size(), ' ');
    line += c == 0 ? row[c] + padding : padding + row[c];
  }
  return line + (markdown ? " |\n" : "\n");
}

std::string Rule(const std::vector<size_t>& widths) {
  std::string line = "|";
  for (size_t c = 0; c < widths.size(); ++c) {
    const std::string dashes(widths[c], '-');
    line += c == 0 ? absl::StrCat(" ", dashes, " |") : absl::StrCat(" ", dashes, ":|");
  }
  return line + "\n";
}

}  // namespace

std::string Render(const Table& table, TableStyle style) {
  if (table.rows.empty()) return "";
  const bool markdown = style == TableStyle::kMarkdown;
  const std::vector<size_t> widths = Widths(table);
  std::string text = markdown ? absl::StrCat("### ", table.title, "\n\n") : table.title + "\n";
  text += Line(table.columns, widths, style);
  if (markdown) text += Rule(widths);
  for (const Row& row : table.rows) text += Line(row, widths, style);
  return text + "\n";
}

}  // namespace keelson::bench
