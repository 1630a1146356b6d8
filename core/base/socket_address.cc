#include "core/base/socket_address.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

constexpr size_t kNetworkBytes = 8;

std::string ToText(int family, const void* ip) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, ip, text, sizeof(text));
  return text;
}

bool Listen(int fd, SocketAddress address, int backlog) {
  // SO_REUSEPORT is not set: two servers would share the port unnoticed.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.bytes.ss_family == AF_INET6) {
    const int off = 0;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  return bind(fd, address.get(), address.size) == 0 && listen(fd, backlog) == 0;
}

}  // namespace

SocketAddress SocketAddress::Any(int family) {
  SocketAddress address;
  address.bytes.ss_family = static_cast<sa_family_t>(family);
  address.size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return address;
}

SocketAddress SocketAddress::OwnOf(int fd) {
  SocketAddress address;
  getsockname(fd, address.get(), &address.size);
  return address;
}

SocketAddress SocketAddress::PeerOf(int fd) {
  SocketAddress address;
  getpeername(fd, address.get(), &address.size);
  return address;
}

std::string SocketAddress::host() const {
  if (bytes.ss_family == AF_INET) {
    return ToText(AF_INET, &reinterpret_cast<const sockaddr_in*>(&bytes)->sin_addr);
  }
  if (bytes.ss_family != AF_INET6) return "";
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(&bytes)->sin6_addr;
  return IN6_IS_ADDR_V4MAPPED(&ip) ? ToText(AF_INET, ip.s6_addr + 12) : ToText(AF_INET6, &ip);
}

// The port is at the same place in both families' addresses.
int SocketAddress::port() const {
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bytes)->sin_port);
}

void SocketAddress::set_port(int port) {
  reinterpret_cast<sockaddr_in*>(&bytes)->sin_port = htons(static_cast<uint16_t>(port));
}

int ListenOn(SocketAddress address, int backlog) {
  const int fd = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || Listen(fd, address, backlog)) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

std::string ClientOf(const std::string& address) {
  in6_addr ip{};
  if (inet_pton(AF_INET6, address.c_str(), &ip) != 1) return address;
  std::fill(ip.s6_addr + kNetworkBytes, ip.s6_addr + sizeof(ip.s6_addr), 0);
  return absl::StrCat(ToText(AF_INET6, &ip), "/64");
}

}  // namespace keelson
