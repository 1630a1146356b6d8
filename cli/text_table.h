// Columns of text, each as wide as its widest cell.
#ifndef KEELSON_CLI_TEXT_TABLE_H_
#define KEELSON_CLI_TEXT_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace keelson {

class TextTable {
 public:
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // Lines without spaces at their ends; two spaces between columns. Width is counted in bytes.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace keelson

#endif  // KEELSON_CLI_TEXT_TABLE_H_
