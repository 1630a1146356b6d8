#include "core/http/client_address.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

TEST(ClientOf, IsAnAddressOfIpv4) {
  EXPECT_EQ(ClientOf("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(ClientOf(""), "");
}

TEST(ClientOf, IsANetworkOfIpv6) {
  EXPECT_EQ(ClientOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(ClientOf("2001:db8:1:2:ffff::1"), "2001:db8:1:2::/64");
  EXPECT_NE(ClientOf("2001:db8:1:3::1"), ClientOf("2001:db8:1:2::1"));
}

}  // namespace
}  // namespace keelson
