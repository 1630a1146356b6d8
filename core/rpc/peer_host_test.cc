#include "core/rpc/peer_host.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(PeerHostTest, IsTheAddressWithoutThePort) {
  EXPECT_EQ(HostOfPeer("ipv4:10.0.0.7:40210"), "10.0.0.7");
  EXPECT_EQ(HostOfPeer("ipv6:%5Bfd00::7%5D:40210"), "[fd00::7]");
  EXPECT_EQ(HostOfPeer("ipv6:[fd00::7]:40210"), "[fd00::7]");
}

TEST(PeerHostTest, OnThisMachineThereIsNone) {
  for (const char* peer : {"ipv4:127.0.0.1:5", "ipv4:127.3.0.1:5", "ipv6:%5B::1%5D:5",
                           "unix:", "unix:/tmp/socket", "", "127.0.0.1"}) {
    EXPECT_EQ(HostOfPeer(peer), "") << peer;
  }
}

}  // namespace
}  // namespace keelson
