#include "dashboard/api/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/client/services/chief_service_testing.h"
#include "core/cluster/consistency.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RecordedChief : public FakeChiefService {
 public:
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse*) override {
    calls.push_back(request.ShortDebugString());
    return status;
  }
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse*) override {
    const auto mode = ConsistencyMode::FromProto(request.mode());
    EXPECT_TRUE(mode.ok()) << mode.status();
    if (mode.ok()) calls.push_back(mode->ToString());
    return status;
  }

  std::vector<std::string> calls;
  absl::Status status;
};

TEST(ChiefActionsTest, AskTheChief) {
  RecordedChief chief;
  const std::unique_ptr<JobActions> actions = ChiefActions(&chief);
  EXPECT_TRUE(actions->EndTraining("good enough").ok());
  for (const char* mode : {"async", "ssp:4", "sync:3", "sync:3/4"}) {
    EXPECT_TRUE(actions->SetMode(mode).ok()) << mode;
  }
  EXPECT_THAT(chief.calls,
              ElementsAre("reason: \"good enough\"", "async", "ssp:4", "sync:3", "sync:3/4"));
  chief.status = absl::PermissionDeniedError("no");
  EXPECT_EQ(actions->EndTraining("a"), chief.status);
  EXPECT_EQ(actions->SetMode("async"), chief.status);
}

TEST(ChiefActionsTest, AModeThatMakesNoSenseDoesNotReachTheChief) {
  RecordedChief chief;
  const std::unique_ptr<JobActions> actions = ChiefActions(&chief);
  for (const char* mode : {"", "fast", "ssp:-1", "sync:0", "sync:99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(actions->SetMode(mode))) << mode;
  }
  EXPECT_THAT(chief.calls, IsEmpty());
}

}  // namespace
}  // namespace keelson
