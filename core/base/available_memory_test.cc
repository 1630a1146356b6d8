#include "core/base/available_memory.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

TEST(AvailableMemoryTest, ReadsTheLimitOfAControlGroup) {
  EXPECT_EQ(BytesOfMemoryMax("536870912\n"), 536870912);
  EXPECT_EQ(BytesOfMemoryMax("1"), 1);
  for (const char* text : {"", "max", "max\n", "0", "-5", "12 13", "99999999999999999999"}) {
    EXPECT_EQ(BytesOfMemoryMax(text), std::nullopt) << text;
  }
}

TEST(AvailableMemoryTest, IsThatOfThisMachine) {
  EXPECT_GT(AvailableMemory(), int64_t{64} << 20);
  EXPECT_LT(AvailableMemory(), int64_t{1} << 50);
}

}  // namespace
}  // namespace keelson
