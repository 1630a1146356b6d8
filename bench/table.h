// A table of texts for a terminal or a Markdown page.
#ifndef KEELSON_BENCH_TABLE_H_
#define KEELSON_BENCH_TABLE_H_

#include <string>
#include <vector>

namespace keelson::bench {

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
};

enum class TableStyle { kText, kMarkdown };

// With the title above and an empty line below; nothing without rows. The first column is aligned
// to the left, the others to the right.
std::string Render(const Table& table, TableStyle style);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_H_
