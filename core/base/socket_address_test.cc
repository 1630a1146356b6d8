#include "core/base/socket_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace keelson {
namespace {

SocketAddress Ipv6(const char* text) {
  SocketAddress address = SocketAddress::Any(AF_INET6);
  inet_pton(AF_INET6, text, &reinterpret_cast<sockaddr_in6*>(&address.bytes)->sin6_addr);
  return address;
}

TEST(SocketAddress, ShowsItsHostAndPort) {
  EXPECT_EQ(SocketAddress().host(), "");
  EXPECT_EQ(SocketAddress::Any(AF_INET).host(), "0.0.0.0");
  EXPECT_EQ(Ipv6("2001:db8::1").host(), "2001:db8::1");
  EXPECT_EQ(Ipv6("::ffff:192.0.2.1").host(), "192.0.2.1");
  SocketAddress address = Ipv6("::1");
  address.set_port(40210);
  EXPECT_EQ(address.port(), 40210);
}

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
