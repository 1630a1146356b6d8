#include "bench/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr absl::string_view kAbstract = "unix-abstract:";
constexpr absl::string_view kLoopback = "127.0.0.1:";

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

SocketAddress LoopbackAddress(int port) {
  SocketAddress address;
  auto* inet = reinterpret_cast<sockaddr_in*>(&address.storage);
  inet->sin_family = AF_INET;
  inet->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  inet->sin_port = htons(static_cast<uint16_t>(port));
  address.size = sizeof(*inet);
  return address;
}

SocketAddress AbstractAddress(absl::string_view name) {
  SocketAddress address;
  auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  local->sun_family = AF_UNIX;
  // An abstract name starts with a zero byte and has no other end than the length.
  std::memcpy(local->sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

absl::StatusOr<SocketAddress> ParseAddress(absl::string_view text) {
  if (absl::ConsumePrefix(&text, kAbstract)) return AbstractAddress(text);
  int port = 0;
  if (!absl::ConsumePrefix(&text, kLoopback) || !absl::SimpleAtoi(text, &port)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected 127.0.0.1:port or unix-abstract:name, found ", text));
  }
  return LoopbackAddress(port);
}

absl::StatusOr<Socket> Open(int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.descriptor() < 0) return absl::ErrnoToStatus(errno, "socket");
  return socket;
}

void SendAtOnce(const Socket& socket) {
  const int on = 1;  // Refused by unix sockets, which never wait.
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

std::string TransportName(Transport transport) {
  if (transport == Transport::kMemory) return "memory";
  return transport == Transport::kUnix ? "unix" : "tcp";
}

Transport TransportFromName(const std::string& name) {
  if (name == "memory") return Transport::kMemory;
  return name == "unix" ? Transport::kUnix : Transport::kTcp;
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool Socket::Send(const char* data, size_t size) const {
  while (size > 0) {
    const ssize_t sent = send(descriptor_, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= sent;
  }
  return true;
}

size_t Socket::Receive(char* data, size_t size) const {
  size_t received = 0;
  while (received < size) {
    const ssize_t more = recv(descriptor_, data + received, size - received, 0);
    if (more <= 0) break;
    received += more;
  }
  return received;
}

absl::StatusOr<Socket> Listen(Transport transport) {
  const SocketAddress address = transport == Transport::kTcp
                                    ? LoopbackAddress(0)
                                    : AbstractAddress(absl::StrCat("keelson-bench-raw-", getpid()));
  ASSIGN_OR_RETURN(Socket socket, Open(address.storage.ss_family));
  if (bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address.storage),
           address.size) != 0 ||
      listen(socket.descriptor(), SOMAXCONN) != 0) {
    return absl::ErrnoToStatus(errno, "listen");
  }
  return socket;
}

std::string AddressOf(const Socket& listener) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  if (address.storage.ss_family == AF_INET) {
    return absl::StrCat(kLoopback,
                        ntohs(reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port));
  }
  const auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  const size_t name_size = address.size - offsetof(sockaddr_un, sun_path) - 1;
  return absl::StrCat(kAbstract, absl::string_view(local->sun_path + 1, name_size));
}

absl::StatusOr<Socket> Accept(const Socket& listener) {
  Socket socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.descriptor() < 0) return absl::ErrnoToStatus(errno, "accept");
  SendAtOnce(socket);
  return socket;
}

absl::StatusOr<Socket> Connect(const std::string& text) {
  ASSIGN_OR_RETURN(const SocketAddress address, ParseAddress(text));
  ASSIGN_OR_RETURN(Socket socket, Open(address.storage.ss_family));
  if (connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address.storage),
              address.size) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("connect to ", text));
  }
  SendAtOnce(socket);
  return socket;
}

}  // namespace keelson::bench
