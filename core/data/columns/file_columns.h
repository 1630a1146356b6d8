// Columns of a file: those that are read, and those that it has.
#ifndef KEELSON_CORE_DATA_COLUMNS_FILE_COLUMNS_H_
#define KEELSON_CORE_DATA_COLUMNS_FILE_COLUMNS_H_

#include <string>
#include <vector>

namespace keelson {

// Each of the columns that are read once, and what needs it, for messages:
// "data.features[2].columns[0]".
struct NeededColumns {
  std::vector<std::string> names;
  std::vector<std::string> needed_by;
};

// A column that a file has. `unreadable` is what it is where no model can take it
// ("decimal128(5, 2)"), otherwise empty.
struct FileColumn {
  std::string name;
  std::string unreadable = {};
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_FILE_COLUMNS_H_
