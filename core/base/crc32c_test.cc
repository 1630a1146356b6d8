#include "core/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace keelson {
namespace {

// RFC 3720, section B.4.
TEST(Crc32cTest, StandardVectors) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, ExtendEqualsWhole) {
  EXPECT_EQ(Crc32cExtend(Crc32c("hello "), "world"), Crc32c("hello world"));
}

TEST(Crc32cTest, Mask) {
  const uint32_t crc = Crc32c("foo");
  EXPECT_NE(MaskCrc32c(crc), crc);
  EXPECT_EQ(MaskCrc32c(0), 0xa282ead8u);
}

}  // namespace
}  // namespace keelson
