#include "core/http/waiting_room.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace keelson {
namespace {

constexpr int kPauseMilliseconds = 100;
constexpr int64_t kTickNanoseconds = 100'000'000;
constexpr uint64_t kInterrupt = 0;
constexpr uint64_t kListening = 1;
constexpr uint64_t kTimer = 2;
constexpr uint64_t kFirstClient = 3;

bool IsUnderWayAs(const ClientConnection& one, const ClientConnection& other) {
  return one.begun() && one.sends() == other.sends() && one.client() == other.client();
}

}  // namespace

WaitingRoom::WaitingRoom(std::unique_ptr<ListeningSocket> socket, const Options& options)
    : socket_(std::move(socket)),
      options_(options),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      interrupt_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      next_id_(kFirstClient) {
  Watch(interrupt_fd_, kInterrupt, EPOLLIN);
  Watch(socket_->fd(), kListening, EPOLLIN);
  Watch(timer_fd_, kTimer, EPOLLIN);
}

WaitingRoom::~WaitingRoom() {
  close(epoll_fd_);
  close(interrupt_fd_);
  close(timer_fd_);
}

std::unique_ptr<ClientConnection> WaitingRoom::Next() {
  while (true) {
    if (std::unique_ptr<ClientConnection> overdue = TakeOverdue()) return overdue;
    epoll_event event{};
    if (epoll_wait(epoll_fd_, &event, 1, -1) <= 0) continue;  // interrupted by a signal
    switch (event.data.u64) {
      case kInterrupt:
        return nullptr;
      case kListening:
        Admit();
        break;
      case kTimer:
        Tick();
        break;
      default:
        if (std::unique_ptr<ClientConnection> ready = Take(event.data.u64)) return ready;
    }
  }
}

void WaitingRoom::Return(std::unique_ptr<ClientConnection> connection) {
  MutexLock lock(&mu_);
  const ClientConnection& kept = *connection;
  Keep(EPOLL_CTL_MOD, std::move(connection));
  if (kept.begun()) BoundClientOf(kept);
}

void WaitingRoom::Interrupt() { eventfd_write(interrupt_fd_, 1); }

void WaitingRoom::Watch(int fd, uint64_t id, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

void WaitingRoom::Admit() {
  const int fd = socket_->Accept();
  if (fd >= 0) {
    MutexLock lock(&mu_);
    Keep(EPOLL_CTL_ADD,
         std::make_unique<ClientConnection>(fd, next_id_++, options_.limits, options_.clock));
    if (waiting_.size() > kMaxWaiting) CloseOneLocked();
    return;
  }
  const bool no_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (!no_room || CloseOne()) return;
  // The connection is still waiting, so epoll_wait() would return at once.
  pollfd interrupt = {interrupt_fd_, POLLIN, 0};
  poll(&interrupt, 1, kPauseMilliseconds);
}

void WaitingRoom::Keep(int epoll_operation, std::unique_ptr<ClientConnection> connection) {
  epoll_event event{};
  event.events = (connection->sends() ? EPOLLOUT : EPOLLIN | EPOLLRDHUP) | EPOLLONESHOT;
  const uint64_t id = connection->id();
  const int fd = connection->fd();
  event.data.u64 = id;
  waiting_[id] = std::move(connection);  // not by event's copy, which is not aligned
  epoll_ctl(epoll_fd_, epoll_operation, fd, &event);
  if (!ticking_) SetTicking(true);
}

std::unique_ptr<ClientConnection> WaitingRoom::Take(uint64_t id) {
  MutexLock lock(&mu_);
  const auto node = waiting_.extract(id);
  return node.empty() ? nullptr : std::move(node.mapped());
}

std::unique_ptr<ClientConnection> WaitingRoom::TakeOverdue() {
  MutexLock lock(&mu_);
  const auto overdue = std::find_if(waiting_.begin(), waiting_.end(),
                                    [](const auto& entry) { return entry.second->overdue(); });
  return overdue == waiting_.end() ? nullptr : std::move(waiting_.extract(overdue).mapped());
}

void WaitingRoom::BoundClientOf(const ClientConnection& newest) {
  size_t count = 0;
  auto oldest = waiting_.end();
  for (auto entry = waiting_.begin(); entry != waiting_.end(); ++entry) {
    if (!IsUnderWayAs(*entry->second, newest)) continue;
    if (count++ == 0) oldest = entry;
  }
  if (count > options_.max_per_client) waiting_.erase(oldest);
}

bool WaitingRoom::CloseOne() {
  MutexLock lock(&mu_);
  if (waiting_.empty()) return false;
  CloseOneLocked();
  return true;
}

void WaitingRoom::CloseOneLocked() {
  std::map<std::string, size_t> counts;
  for (const auto& [id, connection] : waiting_) ++counts[connection->client()];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  waiting_.erase(std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
    return counts[entry.second->client()] == most->second;
  }));
}

void WaitingRoom::Tick() {
  uint64_t ticks = 0;
  // -1: another thread has read it.
  if (read(timer_fd_, &ticks, sizeof(ticks)) < 0) return;
  MutexLock lock(&mu_);
  if (waiting_.empty()) SetTicking(false);
}

void WaitingRoom::SetTicking(bool ticking) {
  ticking_ = ticking;
  itimerspec time{};
  time.it_interval.tv_nsec = ticking ? kTickNanoseconds : 0;
  time.it_value = time.it_interval;
  timerfd_settime(timer_fd_, 0, &time, nullptr);
}

}  // namespace keelson
