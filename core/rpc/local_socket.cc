#include "core/rpc/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {
namespace {

std::string AbstractName(int port) { return absl::StrCat("keelson-", port); }

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

std::string LocalSocket(int port) { return absl::StrCat("unix-abstract:", AbstractName(port)); }

int LocalSocketPort(const std::string& listen_address) {
  return PortOf(listen_address, {"0.0.0.0", "[::]", "localhost", "127.0.0.1"});
}

bool LocalSocketListens(int port) {
  const std::string name = AbstractName(port);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // An abstract name starts with a zero byte and has no other end than the length.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool listens = connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  close(fd);
  return listens;
}

std::string BulkAddress(const std::string& address) {
  const int port = PortOf(address, {"localhost", "127.0.0.1"});
  return port > 0 && LocalSocketListens(port) ? LocalSocket(port) : address;
}

}  // namespace keelson
