#include "dashboard/api/actions.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/cluster/consistency.h"
#include "testing/services/faulty_chief_service.h"

namespace keelson {
namespace {

TEST(ChiefActionsTest, AskTheChief) {
  FaultyChiefService chief;
  const std::unique_ptr<JobActions> actions = ChiefActions(&chief);
  EXPECT_TRUE(actions->EndTraining("good enough").ok());
  ASSERT_EQ(chief.Count(&ChiefService::EndTraining), 1);
  EXPECT_EQ(chief.Requests(&ChiefService::EndTraining)[0].ShortDebugString(),
            "reason: \"good enough\"");
  const std::vector<std::string> modes = {"async", "ssp:4", "sync:3", "sync:3/4"};
  for (const std::string& mode : modes) EXPECT_TRUE(actions->SetMode(mode).ok()) << mode;
  std::vector<std::string> asked;
  for (const v1::SetModeRequest& request : chief.Requests(&ChiefService::SetMode)) {
    asked.push_back(ConsistencyMode::FromProto(request.mode())->ToString());
  }
  EXPECT_EQ(asked, modes);
  const absl::Status refusal = absl::PermissionDeniedError("no");
  chief.FailNext(&ChiefService::EndTraining, {refusal});
  EXPECT_EQ(actions->EndTraining("a"), refusal);
  chief.FailNext(&ChiefService::SetMode, {refusal});
  EXPECT_EQ(actions->SetMode("async"), refusal);
}

TEST(ChiefActionsTest, AModeThatMakesNoSenseDoesNotReachTheChief) {
  FaultyChiefService chief;
  const std::unique_ptr<JobActions> actions = ChiefActions(&chief);
  for (const char* mode : {"", "fast", "ssp:-1", "sync:0", "sync:99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(actions->SetMode(mode))) << mode;
  }
  EXPECT_EQ(chief.Count(&ChiefService::SetMode), 0);
}

}  // namespace
}  // namespace keelson
