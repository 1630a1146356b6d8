#include "core/rpc/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace keelson {
namespace {

constexpr absl::string_view kScheme = "unix-abstract:";
constexpr int kSendBufferBytes = 1 << 20;

struct AbstractAddress {
  sockaddr_un name{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// False: the name is too long.
bool Parse(absl::string_view address, AbstractAddress* parsed) {
  absl::ConsumePrefix(&address, kScheme);
  // An abstract name starts with a zero byte and has no other end than the length.
  if (address.size() >= sizeof(parsed->name.sun_path)) return false;
  parsed->name.sun_family = AF_UNIX;
  std::memcpy(parsed->name.sun_path + 1, address.data(), address.size());
  parsed->size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  return true;
}

// The socket on which `use` succeeds, or -1 and the errno of its failure.
template <typename Use>
int OpenAnd(const std::string& address, LocalSocketKind kind, Use use) {
  AbstractAddress parsed;
  if (!Parse(address, &parsed)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const int type = kind == LocalSocketKind::kPackets ? SOCK_SEQPACKET : SOCK_STREAM;
  const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (use(fd, parsed)) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// 0: none, or another host.
int PortOf(absl::string_view address, std::initializer_list<absl::string_view> hosts) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return 0;
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port)) return 0;
  for (const absl::string_view host : hosts) {
    if (address.substr(0, colon) == host) return port;
  }
  return 0;
}

}  // namespace

std::string LocalSocket(int port) { return absl::StrCat(kScheme, "keelson-", port); }

std::string MemorySocket(int port) { return absl::StrCat(LocalSocket(port), "-memory"); }

bool IsLocalSocket(const std::string& address) { return absl::StartsWith(address, kScheme); }

int LocalSocketPort(const std::string& listen_address) {
  return PortOf(listen_address, {"0.0.0.0", "[::]", "localhost", "127.0.0.1"});
}

void GrowSendBuffer(int fd) {
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));
}

int ListenLocally(const std::string& address, LocalSocketKind kind) {
  return OpenAnd(address, kind, [](int fd, const AbstractAddress& name) {
    return bind(fd, name.get(), name.size) == 0 && listen(fd, SOMAXCONN) == 0;
  });
}

int ConnectLocally(const std::string& address, LocalSocketKind kind) {
  return OpenAnd(address, kind, [](int fd, const AbstractAddress& name) {
    GrowSendBuffer(fd);
    return connect(fd, name.get(), name.size) == 0;
  });
}

std::string BulkAddress(const std::string& address) {
  const int port = PortOf(address, {"localhost", "127.0.0.1"});
  return port > 0 ? LocalSocket(port) : address;
}

std::string MemoryAddress(const std::string& address) {
  const int port = PortOf(address, {"localhost", "127.0.0.1"});
  return port > 0 ? MemorySocket(port) : "";
}

}  // namespace keelson
