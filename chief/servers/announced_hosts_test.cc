#include "chief/servers/announced_hosts.h"

#include <string>
#include <utility>
#include <vector>

#include "core/cluster/task_proto.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr uint64_t kConfig = 0x77;
constexpr char kSeen[] = "10.0.0.7";
constexpr Task kRank1 = {Role::kWorker, 0};
constexpr Task kRank2 = {Role::kWorker, 1};

// Three processes host the model, of four; the leader is a chief.
ClusterSpec LeadersCluster() {
  ClusterSpec cluster;
  cluster.self = {Role::kChief, 0};
  cluster.distributed = true;
  cluster.chief[0] = "node0:29500";
  cluster.world_size = 4;
  cluster.min_workers = 3;
  return cluster;
}

v1::AnnounceHostRequest From(const Task& task, uint64_t incarnation, uint32_t port) {
  v1::AnnounceHostRequest request;
  *request.mutable_header()->mutable_task() = TaskToProto(task);
  request.mutable_header()->set_incarnation(incarnation);
  request.set_config_hash(kConfig);
  request.set_peer("host:" + std::to_string(incarnation));
  request.set_hosts(3);
  request.set_port(port);
  return request;
}

class AnnouncedHostsTest : public testing::Test {
 protected:
  AnnouncedHostsTest() {
    hosts_.Watch([this](const Task& task, const std::string& address) {
      told_.emplace_back(task.ToString(), address);
    });
  }

  absl::Status Announce(const v1::AnnounceHostRequest& request,
                        const std::string& seen_host = kSeen) {
    return hosts_.Announce(request, seen_host, &response_);
  }
  // What has been told since it was asked the last time.
  std::vector<std::pair<std::string, std::string>> Told() { return std::exchange(told_, {}); }

  ManualClock clock_;
  v1::AnnounceHostResponse response_;
  std::vector<std::pair<std::string, std::string>> told_;
  AnnouncedHosts hosts_{LeadersCluster(), kConfig, &clock_};
};

TEST_F(AnnouncedHostsTest, AProcessIsWhereItsCallCameFrom) {
  ASSERT_EQ(Announce(From(kRank1, 5, 4711)), absl::OkStatus());
  EXPECT_EQ(response_.address(), "10.0.0.7:4711");
  ASSERT_EQ(Announce(From(kRank2, 6, 4712), "[fd00::7]"), absl::OkStatus());
  EXPECT_THAT(Told(),
              ElementsAre(Pair("worker-0", "10.0.0.7:4711"), Pair("worker-1", "[fd00::7]:4712")));
  // It says so again and again.
  ASSERT_EQ(Announce(From(kRank1, 5, 4711)), absl::OkStatus());
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(AnnouncedHostsTest, AProcessBesideTheLeaderIsAtTheLeadersHost) {
  ASSERT_EQ(Announce(From(kRank1, 5, 4711), ""), absl::OkStatus());
  EXPECT_EQ(response_.address(), "node0:4711");
}

TEST_F(AnnouncedHostsTest, AHostThatTheProcessNamesCounts) {
  v1::AnnounceHostRequest request = From(kRank1, 5, 4711);
  request.set_host("node7");
  ASSERT_EQ(Announce(request), absl::OkStatus());
  EXPECT_EQ(response_.address(), "node7:4711");
}

TEST_F(AnnouncedHostsTest, WhoeverWatchesLaterIsToldAll) {
  ASSERT_EQ(Announce(From(kRank2, 6, 4712)), absl::OkStatus());
  hosts_.Watch(nullptr);
  ASSERT_EQ(Announce(From(kRank1, 5, 4711)), absl::OkStatus());
  EXPECT_THAT(Told(), ElementsAre(Pair("worker-1", "10.0.0.7:4712")));
  hosts_.Watch([this](const Task& task, const std::string& address) {
    told_.emplace_back(task.ToString(), address);
  });
  EXPECT_THAT(Told(),
              ElementsAre(Pair("worker-0", "10.0.0.7:4711"), Pair("worker-1", "10.0.0.7:4712")));
}

TEST_F(AnnouncedHostsTest, ANewerProcessTakesThePlaceOfAnOlderOne) {
  v1::AnnounceHostRequest older = From(kRank1, 5, 4711);
  ASSERT_EQ(Announce(older), absl::OkStatus());
  EXPECT_EQ(response_.registered_at_us(), absl::ToUnixMicros(clock_.Now()));
  older.set_registered_at_us(response_.registered_at_us());
  clock_.Advance(absl::Milliseconds(1500));
  testing::internal::CaptureStderr();
  ASSERT_EQ(Announce(From(kRank1, 9, 4800)), absl::OkStatus());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("rank 1 (worker-0) is host:9 at 10.0.0.7:4800 in place of host:5, heard of "
                        "1.5s ago"));
  EXPECT_GT(response_.registered_at_us(), older.registered_at_us());
  v1::AnnounceHostRequest newer = From(kRank1, 9, 4800);
  newer.set_registered_at_us(response_.registered_at_us());
  EXPECT_EQ(Announce(newer), absl::OkStatus());
  EXPECT_EQ(Announce(older),
            absl::AlreadyExistsError(
                "rank 1 (worker-0) is another process now, host:9 at 10.0.0.7:4800, which has "
                "registered later: expected one process of each rank, found two"));
  EXPECT_EQ(Announce(newer), absl::OkStatus());
  EXPECT_THAT(Told(),
              ElementsAre(Pair("worker-0", "10.0.0.7:4711"), Pair("worker-0", "10.0.0.7:4800")));
}

// Its call was under way when it ended, and arrives after those of its successor.
TEST_F(AnnouncedHostsTest, AProcessThatHadEndedWhenItsAnnouncementCameTakesNoPlaceForLong) {
  v1::AnnounceHostRequest living = From(kRank1, 9, 4800);
  ASSERT_EQ(Announce(living), absl::OkStatus());
  living.set_registered_at_us(response_.registered_at_us());
  clock_.Advance(absl::Milliseconds(500));
  ASSERT_EQ(Announce(From(kRank1, 5, 4711)), absl::OkStatus());
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_EQ(Announce(living),
            absl::UnavailableError(
                "rank 1 (worker-0): host:5 at 10.0.0.7:4711 has registered later; whether it lives "
                "is not known yet"));
  clock_.Advance(AnnouncedHosts::kConfirmation);
  EXPECT_EQ(Announce(living), absl::OkStatus());
  EXPECT_THAT(Told(),
              ElementsAre(Pair("worker-0", "10.0.0.7:4800"), Pair("worker-0", "10.0.0.7:4711"),
                          Pair("worker-0", "10.0.0.7:4800")));
}

// It was cut off, and neither is known to the leader that it finds.
TEST_F(AnnouncedHostsTest, AfterARestartOfTheLeaderTheNewerProcessCountsToo) {
  v1::AnnounceHostRequest older = From(kRank1, 5, 4711);
  older.set_registered_at_us(100);
  v1::AnnounceHostRequest newer = From(kRank1, 9, 4800);
  newer.set_registered_at_us(200);
  ASSERT_EQ(Announce(older), absl::OkStatus());
  ASSERT_EQ(Announce(newer), absl::OkStatus());
  EXPECT_EQ(response_.registered_at_us(), 200);
  EXPECT_TRUE(absl::IsAlreadyExists(Announce(older)));
  EXPECT_EQ(Announce(newer), absl::OkStatus());
}

// The clock of the leader's machine was set back.
TEST_F(AnnouncedHostsTest, AProcessHasComeLaterThanTheOneBeforeIt) {
  v1::AnnounceHostRequest older = From(kRank1, 5, 4711);
  older.set_registered_at_us(absl::ToUnixMicros(clock_.Now()) + 1000);
  ASSERT_EQ(Announce(older), absl::OkStatus());
  ASSERT_EQ(Announce(From(kRank1, 9, 4800)), absl::OkStatus());
  EXPECT_EQ(response_.registered_at_us(), older.registered_at_us() + 1);
  v1::AnnounceHostRequest newer = From(kRank1, 9, 4800);
  newer.set_registered_at_us(response_.registered_at_us());
  EXPECT_EQ(Announce(newer), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(Announce(older)));
}

// Its port was free again.
TEST_F(AnnouncedHostsTest, ThereIsOneProcessAtAnAddress) {
  ASSERT_EQ(Announce(From(kRank1, 5, 4711)), absl::OkStatus());
  ASSERT_EQ(Announce(From(kRank2, 6, 4711)), absl::OkStatus());
  EXPECT_THAT(Told(), ElementsAre(Pair("worker-0", "10.0.0.7:4711"), Pair("worker-0", ""),
                                  Pair("worker-1", "10.0.0.7:4711")));
}

TEST_F(AnnouncedHostsTest, ProgressIsLogged) {
  testing::internal::CaptureStderr();
  const AnnouncedHosts fresh(LeadersCluster(), kConfig, &clock_);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("; waiting for 2 of 3 processes: rank 1 (worker-0), rank 2 (worker-1)"));
  testing::internal::CaptureStderr();
  ASSERT_EQ(Announce(From(kRank2, 6, 4712)), absl::OkStatus());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("rank 2 (worker-1) is host:6 at 10.0.0.7:4712; waiting for 1 of 3 "
                        "processes: rank 1 (worker-0)"));
  testing::internal::CaptureStderr();
  ASSERT_EQ(Announce(From(kRank1, 5, 4711)), absl::OkStatus());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("; all 3 processes are there"));
}

// --- Errors ---

TEST_F(AnnouncedHostsTest, ARankThatHostsNothingIsRefused) {
  for (const Task& task : {Task{Role::kWorker, 2}, Task{Role::kChief, 0}}) {
    EXPECT_EQ(Announce(From(task, 5, 4711)),
              absl::InvalidArgumentError(
                  "AnnounceHost: expected a rank from 1 to 2, which host the model beside the "
                  "leader (worker-0 to worker-1), found " +
                  task.ToString() + " of 3 processes"));
  }
}

TEST_F(AnnouncedHostsTest, AnotherWorldIsRefused) {
  v1::AnnounceHostRequest request = From(kRank1, 5, 4711);
  request.set_hosts(2);
  EXPECT_EQ(Announce(request),
            absl::FailedPreconditionError(
                "rank 1 (worker-0): expected that 3 processes host the model, as the leader counts "
                "them, found 2 (WORLD_SIZE, or the least number of PET_NNODES)"));
}

TEST_F(AnnouncedHostsTest, AnotherConfigurationIsRefused) {
  v1::AnnounceHostRequest request = From(kRank1, 5, 4711);
  request.set_config_hash(3);
  EXPECT_EQ(Announce(request), ConfigMismatch(kConfig, 3, "rank 1 (worker-0)"));
}

TEST_F(AnnouncedHostsTest, WhatIsNoAddressIsRefused) {
  const auto error = [&](v1::AnnounceHostRequest request, const std::string& host) {
    request.set_host(host);
    const absl::Status status = Announce(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(error(From(kRank1, 5, 0), ""),
            "AnnounceHost: the caller's address: expected a port in 1..65535, found "
            "\"10.0.0.7:0\"");
  EXPECT_THAT(error(From(kRank1, 5, 65536), ""), HasSubstr("found \"10.0.0.7:65536\""));
  EXPECT_THAT(error(From(kRank1, 5, 4711), "a b"), HasSubstr("found \"a b:4711\""));
  EXPECT_EQ(error(From(kRank1, 5, 4711), std::string(254, 'a')),
            "AnnounceHost: host: expected at most 253 bytes, found 254");
  EXPECT_EQ(error(From(kRank1, 0, 4711), ""),
            "AnnounceHost: worker-0: expected an incarnation, found 0");
  v1::AnnounceHostRequest timeless = From(kRank1, 5, 4711);
  timeless.set_registered_at_us(-1);
  EXPECT_EQ(error(timeless, ""), "AnnounceHost: registered_at_us: expected 0..2^62, found -1");
  v1::AnnounceHostRequest nobody = From(kRank1, 5, 4711);
  nobody.mutable_header()->clear_task();
  EXPECT_THAT(error(nobody, ""), HasSubstr("task.role"));
}

}  // namespace
}  // namespace keelson
