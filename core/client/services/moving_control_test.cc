#include "core/client/services/moving_control.h"

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "testing/services/faulty_parameter_control.h"

namespace keelson {
namespace {

// A connection to a server that lives longer.
class Connected : public FaultyParameterControl {
 public:
  explicit Connected(FaultyParameterControl* server, int* cancelled)
      : FaultyParameterControl(server), cancelled_(cancelled) {}
  void CancelFileCalls() override { ++*cancelled_; }

 private:
  int* const cancelled_;
};

class MovingControlTest : public testing::Test {
 protected:
  absl::Status GetStatus() {
    v1::ShardStatus status;
    return control_.GetStatus({}, &status);
  }
  int CallsAt(const std::string& address) {
    return servers_[address].Count(&ParameterControl::GetStatus);
  }

  std::map<std::string, FaultyParameterControl> servers_;
  std::map<std::string, int> cancelled_;
  MovingControl control_{"worker-1", [this](const std::string& address) {
                           return std::make_unique<Connected>(&servers_[address],
                                                              &cancelled_[address]);
                         }};
};

TEST_F(MovingControlTest, CallsGoWhereTheServerIs) {
  EXPECT_EQ(GetStatus(), absl::UnavailableError("worker-1 has not said where it is"));
  control_.MoveTo("a:1");
  EXPECT_EQ(GetStatus(), absl::OkStatus());
  control_.MoveTo("b:2");
  EXPECT_EQ(GetStatus(), absl::OkStatus());
  EXPECT_EQ(GetStatus(), absl::OkStatus());
  EXPECT_EQ(CallsAt("a:1"), 1);
  EXPECT_EQ(CallsAt("b:2"), 2);
  control_.MoveTo("");
  EXPECT_TRUE(absl::IsUnavailable(GetStatus()));
}

TEST_F(MovingControlTest, ACallUnderWayEndsWhereItBegan) {
  servers_["a:1"].Block(&ParameterControl::GetStatus, true);
  control_.MoveTo("a:1");
  std::thread caller([&] { EXPECT_EQ(GetStatus(), absl::OkStatus()); });
  servers_["a:1"].AwaitCount(&ParameterControl::GetStatus, 1);
  control_.MoveTo("b:2");
  EXPECT_EQ(GetStatus(), absl::OkStatus());
  // It is still under way, and its connection is ended, too.
  control_.GiveUpCalls();
  EXPECT_TRUE(servers_["a:1"].given_up());
  EXPECT_TRUE(servers_["b:2"].given_up());
  control_.CancelFileCalls();
  EXPECT_EQ(cancelled_["a:1"], 1);
  servers_["a:1"].Block(&ParameterControl::GetStatus, false);
  caller.join();
  EXPECT_EQ(CallsAt("b:2"), 1);
}

TEST_F(MovingControlTest, FileCallsAreEndedAtLaterAddressesToo) {
  control_.MoveTo("a:1");
  control_.CancelFileCalls();
  EXPECT_EQ(cancelled_["a:1"], 1);
  control_.MoveTo("b:2");
  EXPECT_EQ(cancelled_["b:2"], 1);
}

}  // namespace
}  // namespace keelson
