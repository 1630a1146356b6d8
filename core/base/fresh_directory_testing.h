// A directory of its own for each test that needs files.
#ifndef KEELSON_CORE_BASE_FRESH_DIRECTORY_TESTING_H_
#define KEELSON_CORE_BASE_FRESH_DIRECTORY_TESTING_H_

#include <string>

namespace keelson {

// Makes an empty directory below testing::TempDir() and returns its path. Fails the test when that
// is not possible. Nobody removes it.
std::string FreshDirectory();

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_FRESH_DIRECTORY_TESTING_H_
