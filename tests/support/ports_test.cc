#include "tests/support/ports.h"

#include <set>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ReservedPortsTest, ArePrivate) {
  const ReservedPorts first(8);
  const ReservedPorts second(8);
  std::set<int> all;
  for (int i = 0; i < 8; ++i) {
    all.insert(first[i]);
    all.insert(second[i]);
    EXPECT_GE(first[i], 15000);
  }
  EXPECT_EQ(all.size(), 16);
}

}  // namespace
}  // namespace keelson
