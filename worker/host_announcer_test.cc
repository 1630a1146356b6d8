#include "worker/host_announcer.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "testing/services/faulty_chief_service.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class HostAnnouncerTest : public testing::Test {
 protected:
  HostAnnouncerTest() {
    leader_.Answer(&ChiefService::AnnounceHost,
                   [](const v1::AnnounceHostRequest& request, v1::AnnounceHostResponse* response) {
                     response->set_address("node7:" + std::to_string(request.port()));
                     response->set_registered_at_us(12);
                     return absl::OkStatus();
                   });
  }

  absl::StatusOr<std::unique_ptr<HostAnnouncer>> Start() {
    v1::AnnounceHostRequest request;
    request.set_port(4711);
    return HostAnnouncer::Start(request, std::make_unique<FaultyChiefService>(&leader_), retry_,
                                Clock::Real(), &stop_, [this] { refused_.Raise(); });
  }
  int announcements() const { return leader_.Count(&ChiefService::AnnounceHost); }

  FaultyChiefService leader_;
  RetryOptions retry_ = {.first_pause = absl::Milliseconds(1)};
  StopSignal stop_;
  StopSignal refused_;
};

TEST_F(HostAnnouncerTest, WaitsForTheLeaderAndLearnsItsAddress) {
  leader_.FailNext(&ChiefService::AnnounceHost,
                   {absl::UnavailableError("away"), absl::DeadlineExceededError("late")});
  const auto announcer = Start();
  ASSERT_TRUE(announcer.ok()) << announcer.status();
  EXPECT_EQ((*announcer)->address(), "node7:4711");
  EXPECT_EQ(announcements(), 3);
}

TEST_F(HostAnnouncerTest, SaysItAgainAlsoWhenTheLeaderWasAway) {
  const auto announcer = Start();
  ASSERT_TRUE(announcer.ok()) << announcer.status();
  leader_.FailNext(&ChiefService::AnnounceHost,
                   {absl::UnavailableError("killed"), absl::UnavailableError("killed")});
  leader_.AwaitCount(&ChiefService::AnnounceHost, 4);
  EXPECT_EQ((*announcer)->status(), absl::OkStatus());
  const auto requests = leader_.Requests(&ChiefService::AnnounceHost);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].port(), 4711u);
    EXPECT_EQ(requests[i].registered_at_us(), i == 0 ? 0 : 12);
  }
}

TEST_F(HostAnnouncerTest, ARefusalEndsTheStart) {
  const absl::Status refusal = absl::FailedPreconditionError("another configuration");
  leader_.FailNext(&ChiefService::AnnounceHost, {refusal});
  EXPECT_EQ(Start().status(), refusal);
}

TEST_F(HostAnnouncerTest, ALaterRefusalIsTold) {
  const auto announcer = Start();
  ASSERT_TRUE(announcer.ok()) << announcer.status();
  const absl::Status refusal = absl::AlreadyExistsError("another process");
  leader_.FailNext(&ChiefService::AnnounceHost, {refusal});
  refused_.Wait();
  EXPECT_EQ((*announcer)->status(), refusal);
}

TEST_F(HostAnnouncerTest, EndsWhenItIsStopped) {
  leader_.Sever();
  stop_.Raise();
  EXPECT_TRUE(absl::IsCancelled(Start().status()));
}

TEST_F(HostAnnouncerTest, GivesUpALeaderThatStaysAway) {
  leader_.Sever();
  retry_.give_up_after = absl::Milliseconds(5);
  const absl::Status status = Start().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("registering with the leader for "));
}

}  // namespace
}  // namespace keelson
