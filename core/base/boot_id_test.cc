#include "core/base/boot_id.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(BootIdTest, StaysTheSame) {
  EXPECT_THAT(BootId(), testing::SizeIs(36));
  EXPECT_EQ(BootId(), BootId());
}

}  // namespace
}  // namespace keelson
