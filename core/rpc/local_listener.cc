#include "core/rpc/local_listener.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace keelson {
namespace {

// Where the process has no file left, a connection that waits makes poll() return at once.
constexpr int kNoFilePauseMicroseconds = 10'000;

}  // namespace

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Listen(const std::string& address,
                                                                     LocalSocketKind kind) {
  const int listener = ListenLocally(address, kind);
  if (listener < 0) return absl::InvalidArgumentError(strerror(errno));
  return std::unique_ptr<LocalListener>(new LocalListener(listener, eventfd(0, EFD_CLOEXEC)));
}

LocalListener::~LocalListener() {
  Stop();
  close(listener_);
  close(stop_);
}

void LocalListener::Start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  thread_ = Thread([this] { Run(); });
}

void LocalListener::Stop() {
  eventfd_write(stop_, 1);
  if (thread_.Joinable()) thread_.Join();
  shutdown(listener_, SHUT_RDWR);  // Who connects now is refused.
}

void LocalListener::Run() {
  while (true) {
    pollfd fds[] = {{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    if (fds[0].revents != 0) Accept();
  }
}

void LocalListener::Accept() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    GrowSendBuffer(fd);
    hand_over_(fd);
  } else if (errno != EAGAIN && errno != ECONNABORTED) {
    usleep(kNoFilePauseMicroseconds);
  }
}

}  // namespace keelson
