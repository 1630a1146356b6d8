#include "core/http/client_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

constexpr size_t kNetworkBytes = 8;

std::string ToText(int family, const void* ip) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, ip, text, sizeof(text));
  return text;
}

}  // namespace

std::string PeerAddress(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  if (address.ss_family == AF_INET) {
    return ToText(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr);
  }
  if (address.ss_family != AF_INET6) return "";
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  // A mapped address is that of an IPv4 client of a socket for both families.
  return IN6_IS_ADDR_V4MAPPED(&ip) ? ToText(AF_INET, ip.s6_addr + 12) : ToText(AF_INET6, &ip);
}

std::string ClientOf(const std::string& address) {
  in6_addr ip{};
  if (inet_pton(AF_INET6, address.c_str(), &ip) != 1) return address;
  std::fill(ip.s6_addr + kNetworkBytes, ip.s6_addr + sizeof(ip.s6_addr), 0);
  return absl::StrCat(ToText(AF_INET6, &ip), "/64");
}

}  // namespace keelson
