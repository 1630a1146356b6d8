// Lists of names in messages.
#ifndef KEELSON_CORE_TENSOR_FILES_NAME_LIST_H_
#define KEELSON_CORE_TENSOR_FILES_NAME_LIST_H_

#include <string>
#include <vector>

namespace keelson {

// "3 (a, b, c)": their number, and the first 8 of them.
std::string SomeOf(std::vector<std::string> names);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_NAME_LIST_H_
