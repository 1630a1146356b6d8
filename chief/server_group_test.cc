#include "chief/server_group.h"

#include <thread>

#include "chief/fake_parameter_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ServerGroupTest : public testing::Test {
 protected:
  static ServerGroup::Options MakeOptions() {
    ServerGroup::Options options;
    options.header.set_incarnation(42);
    options.config_hash = FakeParameterServer::kConfigHash;
    options.chief_address = "chief:2222";
    return options;
  }
  v1::InitializeShardRequest Request(const std::string& restore_prefix) {
    v1::InitializeShardRequest request;
    request.set_seed(5);
    request.set_restore_prefix(restore_prefix);
    return request;
  }

  ManualClock clock_;
  StopSignal stop_;
  FakeParameterServer servers_[2];
  ServerGroup group_{MakeOptions(),
                     {{"ps-0", "a:1", &servers_[0]}, {"ps-1", "b:2", &servers_[1]}},
                     &clock_,
                     &stop_};
};

TEST_F(ServerGroupTest, EveryoneIsMissingUntilHeardOf) {
  EXPECT_THAT(group_.Missing(), ElementsAre("ps-0 at a:1", "ps-1 at b:2"));
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  EXPECT_THAT(group_.Missing(), IsEmpty());
  EXPECT_EQ(servers_[0].chief_address(), "chief:2222");
}

TEST_F(ServerGroupTest, WaitsForAServerThatComesLate) {
  servers_[1].SetAway(true);
  std::thread starts([&] {
    servers_[1].AwaitProbes(1);
    EXPECT_THAT(group_.Missing(), testing::Contains("ps-1 at b:2")) << "must not wait";
    servers_[1].SetAway(false);
  });
  EXPECT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  starts.join();
  EXPECT_EQ(servers_[0].probes(), 1) << "who has answered is not asked again";
}

TEST_F(ServerGroupTest, NamesTheServerThatNeverCame) {
  servers_[1].SetAway(true);
  std::thread waits([&] {
    servers_[1].AwaitProbes(1);
    clock_.Advance(absl::Minutes(10));
  });
  const absl::Status status = group_.WaitUntilReachable();
  waits.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("10m"), HasSubstr("ps-1 at b:2"), Not(HasSubstr("ps-0"))));
}

TEST_F(ServerGroupTest, StopEndsTheWait) {
  servers_[0].SetAway(true);
  stop_.Raise();
  EXPECT_EQ(group_.WaitUntilReachable().code(), absl::StatusCode::kCancelled);
}

TEST_F(ServerGroupTest, RefusesAServerWithAnotherConfiguration) {
  servers_[1].SetConfigHash(0xdef);
  const absl::Status status = group_.WaitUntilReachable();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("ps-1"), HasSubstr("0000000000000abc"),
                                                   HasSubstr("0000000000000def")));
}

TEST_F(ServerGroupTest, EveryServerGetsItsShard) {
  ASSERT_EQ(group_.Initialize(Request("p")), absl::OkStatus());
  for (uint32_t s = 0; s < 2; ++s) {
    const auto requests = servers_[s].initializations();
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].shard(), s);
    EXPECT_EQ(requests[0].seed(), 5u);
    EXPECT_EQ(requests[0].restore_prefix(), "p");
    EXPECT_EQ(requests[0].config_hash(), FakeParameterServer::kConfigHash);
    EXPECT_EQ(requests[0].header().incarnation(), 42u);
  }
}

TEST_F(ServerGroupTest, AnErrorNamesTheServer) {
  servers_[1].Damage("p");
  const absl::Status status = group_.Initialize(Request("p"));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "ps-1: p: bad checksum");
}

TEST_F(ServerGroupTest, SuperviseRestoresARestartedServerOnly) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  ASSERT_EQ(group_.Initialize(Request("")), absl::OkStatus());
  servers_[1].Restart();
  group_.Supervise("newest");
  group_.Supervise("newest");
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
  const auto requests = servers_[1].initializations();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].restore_prefix(), "newest");
  EXPECT_EQ(requests[1].shard(), 1u);
  EXPECT_EQ(requests[1].seed(), 5u);
}

TEST_F(ServerGroupTest, SuperviseTriesAgainWhenTheRestoreFails) {
  ASSERT_EQ(group_.Initialize(Request("")), absl::OkStatus());
  servers_[1].Restart();
  servers_[1].Damage("newest");
  group_.Supervise("newest");
  EXPECT_THAT(group_.Missing(), testing::Contains("ps-1 at b:2"));
  group_.Supervise("newer");
  EXPECT_EQ(servers_[1].initializations().back().restore_prefix(), "newer");
  EXPECT_THAT(group_.Missing(), IsEmpty());
}

TEST_F(ServerGroupTest, SuperviseNoticesWhoIsAwayAndBack) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  servers_[0].SetAway(true);
  group_.Supervise("");
  EXPECT_THAT(group_.Missing(), ElementsAre("ps-0 at a:1"));
  servers_[0].SetAway(false);
  group_.Supervise("");
  // Both were never initialised.
  EXPECT_THAT(group_.Missing(), IsEmpty());
}

TEST_F(ServerGroupTest, WriteSnapshotJoinsTheParts) {
  const std::string prefix = JoinPath(FreshModelDirectory(), "model.ckpt-0");
  const auto written = group_.WriteSnapshot(prefix, 3);
  ASSERT_TRUE(written.ok()) << written.status();
  ASSERT_EQ(written->entries.size(), 2u);
  EXPECT_EQ(written->entries[0].key, "v0");
  EXPECT_EQ(written->entries[1].entry.shard_id(), 1);
  EXPECT_EQ(written->bytes, 24);
  EXPECT_EQ(written->longest_cut_microseconds, 7);
  EXPECT_TRUE(FileExists(DataPath(prefix, 1, 3)));
}

TEST_F(ServerGroupTest, WriteSnapshotReportsWhoCouldNot) {
  servers_[0].FailSnapshots(1);
  const auto written = group_.WriteSnapshot(JoinPath(FreshModelDirectory(), "model.ckpt-0"), 3);
  EXPECT_EQ(written.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(written.status().message()), HasSubstr("ps-0: no space"));
}

TEST_F(ServerGroupTest, FinishTellsEveryoneAndEndsSupervision) {
  servers_[0].SetAway(true);
  group_.Finish();
  EXPECT_EQ(servers_[0].finished(), 1);
  EXPECT_EQ(servers_[1].finished(), 1);
  servers_[1].Restart();
  group_.Supervise("");
  EXPECT_EQ(servers_[1].probes(), 0);
  EXPECT_THAT(servers_[1].initializations(), IsEmpty());
}

}  // namespace
}  // namespace keelson
