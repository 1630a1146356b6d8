#include "core/http/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "core/base/socket_address.h"

namespace keelson {
namespace {

constexpr int kWaitingConnections = 64;

// False: it is none.
bool ParseAddress(const std::string& text, SocketAddress* address) {
  *address = SocketAddress::Any(AF_INET);
  auto* const ipv4 = reinterpret_cast<sockaddr_in*>(&address->bytes);
  if (inet_pton(AF_INET, text.c_str(), &ipv4->sin_addr) == 1) return true;
  *address = SocketAddress::Any(AF_INET6);
  auto* const ipv6 = reinterpret_cast<sockaddr_in6*>(&address->bytes);
  return inet_pton(AF_INET6, text.c_str(), &ipv6->sin6_addr) == 1;
}

int Listen(SocketAddress address, int port) {
  address.set_port(port);
  return ListenOn(address, kWaitingConnections);
}

// The same for all addresses of the host.
int ListenOnAll(int port) {
  const int fd = Listen(SocketAddress::Any(AF_INET6), port);
  if (fd >= 0 || errno == EADDRINUSE || errno == EACCES) return fd;
  return Listen(SocketAddress::Any(AF_INET), port);
}

}  // namespace

bool IsNumericAddress(const std::string& address) {
  SocketAddress parsed;
  return ParseAddress(address, &parsed);
}

absl::StatusOr<std::unique_ptr<ListeningSocket>> ListeningSocket::Open(const std::string& address,
                                                                       int port) {
  SocketAddress wanted;
  if (!address.empty() && !ParseAddress(address, &wanted)) {
    return absl::InvalidArgumentError("not a numeric address");
  }
  const int fd = address.empty() ? ListenOnAll(port) : Listen(wanted, port);
  if (fd < 0) return absl::InvalidArgumentError(strerror(errno));
  return std::unique_ptr<ListeningSocket>(new ListeningSocket(fd));
}

ListeningSocket::ListeningSocket(int fd) : fd_(fd), port_(SocketAddress::OwnOf(fd).port()) {}

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
