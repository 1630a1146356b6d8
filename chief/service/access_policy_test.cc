#include "chief/service/access_policy.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(AccessPolicyTest, WithoutATokenTheModeIsOpenAndTheEndForMembers) {
  const AccessPolicy open;
  EXPECT_EQ(open.CheckSetMode({}), absl::OkStatus());
  EXPECT_EQ(open.CheckEndTraining({}, /*names_member=*/true), absl::OkStatus());
  for (const char* authorization : {"", "Bearer ", "Bearer anything"}) {
    const absl::Status status = open.CheckEndTraining({authorization}, false);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(status.message()), HasSubstr("needs --auth_token_file"));
  }
}

TEST(AccessPolicyTest, WithATokenChangesNeedIt) {
  const AccessPolicy policy("0123456789abcdef");
  EXPECT_EQ(policy.CheckSetMode({"Bearer 0123456789abcdef"}), absl::OkStatus());
  EXPECT_EQ(policy.CheckEndTraining({"Bearer 0123456789abcdef"}, false), absl::OkStatus());
  EXPECT_EQ(policy.CheckEndTraining({}, /*names_member=*/true), absl::OkStatus());
  for (const char* wrong : {"Bearer 0123456789abcdee", "Bearer 0123456789abcdef0", "Bearer ",
                            "0123456789abcdef", "bearer 0123456789abcdef"}) {
    const absl::Status status = policy.CheckSetMode({wrong});
    EXPECT_EQ(status, policy.CheckEndTraining({wrong}, false));
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not that of the job"));
  }
  EXPECT_THAT(std::string(policy.CheckSetMode({}).message()), HasSubstr("the call has none"));
}

}  // namespace
}  // namespace keelson
