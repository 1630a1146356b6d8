// Addresses of TCP sockets: who a peer is, and where a server listens.
#ifndef KEELSON_CORE_BASE_SOCKET_ADDRESS_H_
#define KEELSON_CORE_BASE_SOCKET_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

namespace keelson {

// An address of IPv4 or IPv6, with its port.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = sizeof(bytes);

  // All addresses of the host in this family: AF_INET or AF_INET6.
  static SocketAddress Any(int family);
  // Those of the socket's two ends.
  static SocketAddress OwnOf(int fd);
  static SocketAddress PeerOf(int fd);

  // Numeric, "192.0.2.1" or "2001:db8::1"; empty: unknown. Of a mapped address, which is that of an
  // IPv4 client of a socket for both families, IPv4's.
  std::string host() const;
  int port() const;
  void set_port(int port);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

// Returns a socket that does not block, on which `backlog` connections may wait to be accepted; -1:
// refused, and errno says why. SocketAddress::Any(AF_INET6) stands for IPv4's addresses too.
int ListenOn(SocketAddress address, int backlog);

// The addresses that count as one client where clients are limited: an address of IPv4 itself, of
// IPv6 its network, "2001:db8::/64", for a single host may have all addresses of that.
std::string ClientOf(const std::string& address);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_SOCKET_ADDRESS_H_
