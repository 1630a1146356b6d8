#include "core/base/background.h"

#include <sys/resource.h>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(BackgroundTest, TheWorkAloneGivesWay) {
  const int before = getpriority(PRIO_PROCESS, 0);
  int during = before;
  RunInBackground([&during] { during = getpriority(PRIO_PROCESS, 0); });
  EXPECT_GT(during, before);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}

}  // namespace
}  // namespace keelson
