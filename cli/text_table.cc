#include "cli/text_table.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace keelson {

std::string TextTable::ToString() const {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line.append(row[i]).append(widths[i] - row[i].size() + 2, ' ');
    }
    absl::StripTrailingAsciiWhitespace(&line);
    text.append(line).push_back('\n');
  }
  return text;
}

}  // namespace keelson
