#include "core/http/waiting_room.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/clock.h"

namespace keelson {
namespace {

constexpr int kPauseMilliseconds = 100;
constexpr uint64_t kInterrupt = 0;
constexpr uint64_t kListening = 1;
constexpr uint64_t kFirstClient = 2;

}  // namespace

WaitingRoom::WaitingRoom(std::unique_ptr<ListeningSocket> socket, absl::Duration patience)
    : socket_(std::move(socket)),
      patience_(patience),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      interrupt_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_id_(kFirstClient) {
  Watch(interrupt_fd_, kInterrupt, EPOLLIN);
  Watch(socket_->fd(), kListening, EPOLLIN);
}

WaitingRoom::~WaitingRoom() {
  while (CloseOldest()) continue;
  close(epoll_fd_);
  close(interrupt_fd_);
}

int WaitingRoom::Next() {
  while (true) {
    epoll_event event{};
    if (epoll_wait(epoll_fd_, &event, 1, CloseSilent()) <= 0)
      continue;  // interrupted by a signal, or nothing is ready
    if (event.data.u64 == kInterrupt) return -1;
    if (event.data.u64 == kListening) {
      Admit();
      continue;
    }
    const int fd = Take(event.data.u64);
    if (fd >= 0) return fd;
  }
}

void WaitingRoom::Interrupt() { eventfd_write(interrupt_fd_, 1); }

void WaitingRoom::Watch(int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

void WaitingRoom::Admit() {
  const int fd = socket_->Accept();
  if (fd >= 0) {
    MutexLock lock(&mu_);
    const uint64_t id = next_id_++;
    silent_[id] = {fd, Clock::Real()->Monotonic() + patience_};
    Watch(fd, id, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT);
    if (silent_.size() > kMaxWaiting) CloseFirst();
    return;
  }
  const bool no_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (!no_room || CloseOldest()) return;
  // The connection is still waiting, so epoll_wait() would return at once.
  pollfd interrupt = {interrupt_fd_, POLLIN, 0};
  poll(&interrupt, 1, kPauseMilliseconds);
}

int WaitingRoom::Take(uint64_t id) {
  MutexLock lock(&mu_);
  const auto found = silent_.find(id);
  if (found == silent_.end()) return -1;
  const int fd = found->second.fd;
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  silent_.erase(found);
  return fd;
}

int WaitingRoom::CloseSilent() {
  MutexLock lock(&mu_);
  const absl::Duration now = Clock::Real()->Monotonic();
  while (!silent_.empty() && silent_.begin()->second.until <= now) CloseFirst();
  if (silent_.empty()) return -1;
  const absl::Duration left = std::min(silent_.begin()->second.until - now, absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

bool WaitingRoom::CloseOldest() {
  MutexLock lock(&mu_);
  if (silent_.empty()) return false;
  CloseFirst();
  return true;
}

void WaitingRoom::CloseFirst() {
  close(silent_.begin()->second.fd);
  silent_.erase(silent_.begin());
}

}  // namespace keelson
