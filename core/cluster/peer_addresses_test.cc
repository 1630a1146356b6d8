#include "core/cluster/peer_addresses.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::string_view kAllNames[] = {kPyTorchMaster, kPyTorchWorker, kTrainJobNode};

std::vector<std::string> ThreeFrom(
    const Address& leader, absl::Span<const absl::string_view> names = absl::MakeSpan(kAllNames)) {
  const auto addresses = AddressesByRank("MASTER_PORT", leader, 3, names);
  EXPECT_TRUE(addresses.ok()) << addresses.status();
  return addresses.ok() ? *addresses : std::vector<std::string>();
}

TEST(PeerAddressesTest, OnOneMachineAPortFollowsAnother) {
  EXPECT_THAT(ThreeFrom({"localhost", 29500}),
              ElementsAre("localhost:29500", "localhost:29501", "localhost:29502"));
  EXPECT_THAT(ThreeFrom({"127.3.0.9", 1}),
              ElementsAre("127.3.0.9:1", "127.3.0.9:2", "127.3.0.9:3"));
  EXPECT_THAT(ThreeFrom({"[::1]", 65533}),
              ElementsAre("[::1]:65533", "[::1]:65534", "[::1]:65535"));
}

TEST(PeerAddressesTest, NoPortIsAboveTheLast) {
  EXPECT_EQ(AddressesByRank("MASTER_PORT", {"127.0.0.1", 65534}, 3, {}).status(),
            absl::InvalidArgumentError(
                "MASTER_PORT: expected a leader's port up to 65533, since of 3 processes at "
                "127.0.0.1 rank r listens r ports further, found 65534"));
}

TEST(PeerAddressesTest, WorkersFollowTheMasterOfAPyTorchJob) {
  EXPECT_THAT(ThreeFrom({"mnist-master-0", 23456}),
              ElementsAre("mnist-master-0:23456", "mnist-worker-0:23456", "mnist-worker-1:23456"));
  EXPECT_THAT(ThreeFrom({"a-worker-0-master-0.ns.svc.cluster.local", 1}),
              ElementsAre("a-worker-0-master-0.ns.svc.cluster.local:1",
                          "a-worker-0-worker-0.ns.svc.cluster.local:1",
                          "a-worker-0-worker-1.ns.svc.cluster.local:1"));
}

TEST(PeerAddressesTest, TheLastNumberCountsWhereThereIsNoMaster) {
  EXPECT_THAT(ThreeFrom({"mnist-worker-0.ns", 7}),
              ElementsAre("mnist-worker-0.ns:7", "mnist-worker-1.ns:7", "mnist-worker-2.ns:7"));
  EXPECT_THAT(ThreeFrom({"mnist-node-0-0.mnist", 29500}),
              ElementsAre("mnist-node-0-0.mnist:29500", "mnist-node-0-1.mnist:29500",
                          "mnist-node-0-2.mnist:29500"));
}

TEST(PeerAddressesTest, OfAnyOtherHostNothingFollows) {
  for (const char* host : {"node0", "gpu-0", "10.0.0.1", "[fd00::1]", "mnist-master-1", "-master-0",
                           "127.example.org", "mnist.job-master-0", "rack-0-0"}) {
    EXPECT_THAT(ThreeFrom({host, 1}), IsEmpty()) << host;
  }
  const absl::string_view names[] = {kPyTorchMaster};
  EXPECT_THAT(ThreeFrom({"mnist-worker-0", 1}, names), IsEmpty());
}

TEST(PeerAddressesTest, ASingleProcessHasTheLeadersAddress) {
  EXPECT_THAT(*AddressesByRank("", {"node0", 65535}, 1, {}), ElementsAre("node0:65535"));
}

}  // namespace
}  // namespace keelson
