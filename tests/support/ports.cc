#include "tests/support/ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"

namespace keelson {
namespace {

constexpr int kLowestPort = 15000;
constexpr int kUsualFirstEphemeralPort = 32768;

int FirstEphemeralPort() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int low = 0;
  return file >> low && low > kLowestPort + 1000 ? low : kUsualFirstEphemeralPort;
}

// A socket that reserves the port by its name; -1: someone else has it.
int BindName(int port) {
  const std::string name = absl::StrCat("keelson-port-", port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  close(fd);
  return -1;
}

bool IsFree(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return free;
}

}  // namespace

ReservedPorts::ReservedPorts(int count) {
  const int range = FirstEphemeralPort() - kLowestPort;
  const int start = static_cast<int>(RandomId() % static_cast<uint64_t>(range));
  for (int i = 0; i < range && static_cast<int>(ports_.size()) < count; ++i) {
    const int port = kLowestPort + (start + i) % range;
    if (Reserve(port)) ports_.push_back(port);
  }
}

ReservedPorts::~ReservedPorts() {
  for (const int fd : reservations_) close(fd);
}

bool ReservedPorts::Reserve(int port) {
  const int fd = BindName(port);
  if (fd < 0) return false;
  reservations_.push_back(fd);
  return IsFree(port);
}

}  // namespace keelson
