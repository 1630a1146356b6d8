#include "core/base/exit_code.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ExitCodeTest, FollowsTheStatus) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeFor(absl::CancelledError("")), 143);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::DataLossError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::UnavailableError("")), 138);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("")), 138);
  EXPECT_EQ(ExitCodeFor(absl::InternalError("")), 1);
}

}  // namespace
}  // namespace keelson
