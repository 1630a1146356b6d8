#include "core/base/kernel_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(KernelFileTest, IsReadAsAWhole) {
  EXPECT_THAT(ReadKernelFile("/proc/self/status"), testing::ContainsRegex("^Name:.*\nVmHWM:.*\n"));
  EXPECT_EQ(ReadKernelFile("/proc/self/none"), "");
  EXPECT_EQ(ReadKernelFile("/proc"), "");
}

}  // namespace
}  // namespace keelson
