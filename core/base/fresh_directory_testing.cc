#include "core/base/fresh_directory_testing.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace keelson {

std::string FreshDirectory() {
  std::string path = testing::TempDir() + "/keelson_test_XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr) << path;
  return path;
}

}  // namespace keelson
