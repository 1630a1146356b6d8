#include "core/http/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"

namespace keelson {
namespace {

constexpr int kWaitingConnections = 64;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

Address AnyAddress(int family) {
  Address address;
  address.bytes.ss_family = static_cast<sa_family_t>(family);
  address.size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return address;
}

// False: it is none.
bool ParseAddress(const std::string& text, Address* address) {
  *address = AnyAddress(AF_INET);
  auto* const ipv4 = reinterpret_cast<sockaddr_in*>(&address->bytes);
  if (inet_pton(AF_INET, text.c_str(), &ipv4->sin_addr) == 1) return true;
  *address = AnyAddress(AF_INET6);
  auto* const ipv6 = reinterpret_cast<sockaddr_in6*>(&address->bytes);
  return inet_pton(AF_INET6, text.c_str(), &ipv6->sin6_addr) == 1;
}

Address AddressOf(int fd) {
  Address address;
  address.size = sizeof(address.bytes);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address.bytes), &address.size);
  return address;
}

int PortOf(const Address& address) {
  // The port is at the same place in both families' addresses.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.bytes)->sin_port);
}

bool Bind(int fd, Address address, int port) {
  // SO_REUSEPORT is not set: two processes would share the port unnoticed.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.bytes.ss_family == AF_INET6) {
    const int off = 0;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  reinterpret_cast<sockaddr_in*>(&address.bytes)->sin_port = htons(static_cast<uint16_t>(port));
  return bind(fd, reinterpret_cast<const sockaddr*>(&address.bytes), address.size) == 0 &&
         listen(fd, kWaitingConnections) == 0;
}

// Returns a listening socket; -1: refused, and errno says why.
int Listen(const Address& address, int port) {
  const int fd = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || Bind(fd, address, port)) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

// The same for all addresses of the host.
int ListenOnAll(int port) {
  const int fd = Listen(AnyAddress(AF_INET6), port);
  if (fd >= 0 || errno == EADDRINUSE || errno == EACCES) return fd;
  return Listen(AnyAddress(AF_INET), port);
}

}  // namespace

bool IsNumericAddress(const std::string& address) {
  Address parsed;
  return ParseAddress(address, &parsed);
}

absl::StatusOr<std::unique_ptr<ListeningSocket>> ListeningSocket::Open(const std::string& address,
                                                                       int port) {
  Address wanted;
  if (!address.empty() && !ParseAddress(address, &wanted)) {
    return absl::InvalidArgumentError("not a numeric address");
  }
  const int fd = address.empty() ? ListenOnAll(port) : Listen(wanted, port);
  if (fd < 0) return absl::InvalidArgumentError(strerror(errno));
  return std::unique_ptr<ListeningSocket>(new ListeningSocket(fd));
}

ListeningSocket::ListeningSocket(int fd) : fd_(fd), port_(PortOf(AddressOf(fd))) {}

ListeningSocket::~ListeningSocket() { close(fd_); }

int ListeningSocket::Accept() const {
  return accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

bool ClientSockets::Add(int fd) {
  MutexLock lock(&mu_);
  sockets_.insert(fd);
  if (cut_off_) shutdown(fd, SHUT_RDWR);
  return !cut_off_;
}

void ClientSockets::Close(int fd) {
  MutexLock lock(&mu_);
  sockets_.erase(fd);
  close(fd);
}

void ClientSockets::CutOff() {
  MutexLock lock(&mu_);
  cut_off_ = true;
  for (const int fd : sockets_) shutdown(fd, SHUT_RDWR);
}

bool ClientSockets::cut_off() const {
  MutexLock lock(&mu_);
  return cut_off_;
}

}  // namespace keelson
