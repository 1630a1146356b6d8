// Who a client is, by its address.
#ifndef KEELSON_CORE_HTTP_CLIENT_ADDRESS_H_
#define KEELSON_CORE_HTTP_CLIENT_ADDRESS_H_

#include <string>

namespace keelson {

// The numeric address of the socket's other end: "192.0.2.1", "2001:db8::1"; empty: unknown.
std::string PeerAddress(int fd);

// The addresses that count as one client where clients are limited: an address of IPv4 itself, of
// IPv6 its network, "2001:db8::/64", for a single host may have all addresses of that.
std::string ClientOf(const std::string& address);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_CLIENT_ADDRESS_H_
