#include "core/base/host_name.h"

#include <sys/utsname.h>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(HostNameTest, IsThatOfTheKernel) {
  utsname machine{};
  ASSERT_EQ(uname(&machine), 0);
  EXPECT_EQ(HostName(), machine.nodename);
}

}  // namespace
}  // namespace keelson
