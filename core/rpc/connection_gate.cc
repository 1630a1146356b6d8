// The gate keeps a connection until its peer has sent something, so gRPC never sees those that stay
// silent, and a duplicate of each socket that it has handed over. By that it sees when a
// connection ends, for gRPC shuts a socket down before it closes it; how much the peer has sent;
// and it can end the connection, after which gRPC finds it closed.
#include "core/rpc/connection_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/socket_address.h"
#include "core/base/status_macros.h"
#include "core/base/thread_without_signals.h"

namespace keelson {
namespace {

constexpr uint64_t kStopId = 0;
constexpr uint64_t kRoomId = 1;
constexpr uint64_t kFirstListenerId = 2;
constexpr uint64_t kFirstConnectionId = 1000;
// What unknown connections have sent is read this often, of those that gRPC does not have less
// often: they can send no more than their receive buffer takes, and there may be a thousand.
constexpr absl::Duration kTick = absl::Milliseconds(10);
constexpr absl::Duration kWaitingTick = absl::Milliseconds(500);
// The thread's: who shows that he belongs to the job is served before those who have not yet.
constexpr int kNiceness = 10;
constexpr int kPauseMicroseconds = 10'000;
// As gRPC's own listener: data that is not acknowledged for so long ends the connection.
constexpr int kUserTimeoutMilliseconds = 20'000;
// Files that are no connections: the model's, the log's, epoll's.
constexpr size_t kOtherFiles = 256;

// gRPC's name of a peer, with the brackets that it writes as %5B and %5D.
std::string PeerName(const SocketAddress& peer) {
  const std::string host = peer.host();
  const bool ipv6 = host.find(':') != std::string::npos;
  return absl::StrCat(ipv6 ? "ipv6:[" : "ipv4:", host, ipv6 ? "]:" : ":", peer.port());
}

// All addresses of the host that "host:port" names.
absl::StatusOr<std::vector<SocketAddress>> Resolve(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError("not of the form host:port");
  }
  std::string host(address.substr(0, colon));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port(address.substr(colon + 1));
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return absl::InvalidArgumentError(gai_strerror(error));
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress& resolved = addresses.emplace_back();
    resolved.size = one->ai_addrlen;
    std::memcpy(&resolved.bytes, one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(found);
  return addresses;
}

absl::StatusOr<std::vector<int>> ListenOnAll(std::vector<SocketAddress> addresses) {
  if (addresses.size() == 1 && addresses[0].host() == "0.0.0.0") {
    // The same port on all addresses of both families, where the host has IPv6.
    SocketAddress both = SocketAddress::Any(AF_INET6);
    both.set_port(addresses[0].port());
    const int fd = ListenOn(both, SOMAXCONN);
    if (fd >= 0) return std::vector<int>{fd};
  }
  std::vector<int> listeners;
  int why = 0;
  for (SocketAddress& address : addresses) {
    if (!listeners.empty()) address.set_port(SocketAddress::OwnOf(listeners[0]).port());
    const int fd = ListenOn(address, SOMAXCONN);
    if (fd >= 0) {
      listeners.push_back(fd);
    } else if (why == 0 || errno == EADDRINUSE) {
      why = errno;
    }
  }
  // A host may have no address of a family that its name has.
  if (!listeners.empty() && why != EADDRINUSE) return listeners;
  for (const int fd : listeners) close(fd);
  return absl::InvalidArgumentError(strerror(why));
}

int64_t BytesReceived(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

void SetOption(int fd, int option, int value) {
  setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

}  // namespace

struct ConnectionGate::Connection {
  ~Connection() {
    close(fd);
    if (waiting_fd >= 0) close(waiting_fd);
  }

  uint64_t id = 0;
  int fd = -1;          // a duplicate
  int waiting_fd = -1;  // what will be handed over
  bool known = false;
  std::string peer;
  std::string address;
  absl::Time since;
  absl::Time modest_at;  // when it had last not sent too much
  absl::Time next_count = absl::InfinitePast();
  // How many bytes more than granted it had sent when they were counted last.
  int64_t excess = 0;
};

ConnectionGate::Limits ConnectionGate::Limits::OfProcess() {
  Limits limits;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return limits;
  const rlim_t wanted = 2 * limits.connections + kOtherFiles;
  if (files.rlim_cur < wanted) {
    files.rlim_cur = std::min<rlim_t>(wanted, files.rlim_max);
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
  }
  if (files.rlim_cur >= wanted) return limits;
  // Each has a socket and its duplicate.
  const size_t left = files.rlim_cur > 2 * kOtherFiles ? files.rlim_cur - kOtherFiles : kOtherFiles;
  limits.connections = left / 2;
  limits.unknown = limits.connections / 4;
  return limits;
}

absl::StatusOr<std::unique_ptr<ConnectionGate>> ConnectionGate::Listen(absl::string_view address,
                                                                       const Limits& limits) {
  ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, Resolve(address));
  ASSIGN_OR_RETURN(std::vector<int> listeners, ListenOnAll(std::move(addresses)));
  const int port = SocketAddress::OwnOf(listeners.front()).port();
  return std::unique_ptr<ConnectionGate>(new ConnectionGate(std::move(listeners), port, limits));
}

ConnectionGate::ConnectionGate(std::vector<int> listeners, int port, const Limits& limits)
    : listeners_(std::move(listeners)),
      port_(port),
      limits_(limits),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      room_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_id_(kFirstConnectionId),
      queue_(limits.hand_over) {
  Watch(stop_fd_, kStopId, EPOLLIN);
  Watch(room_fd_, kRoomId, EPOLLIN | EPOLLET);
}

ConnectionGate::~ConnectionGate() {
  Stop();
  close(epoll_fd_);
  close(stop_fd_);
  close(room_fd_);
}

void ConnectionGate::Start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  for (size_t i = 0; i < listeners_.size(); ++i)
    Watch(listeners_[i], kFirstListenerId + i, EPOLLIN);
  thread_ = ThreadWithoutSignals([this] { Run(); });
}

void ConnectionGate::Stop() {
  eventfd_write(stop_fd_, 1);
  if (thread_.joinable()) thread_.join();
  MutexLock lock(&mu_);
  if (stopped_) return;
  stopped_ = true;
  for (const int fd : listeners_) close(fd);
  connections_.clear();
}

void ConnectionGate::Watch(int fd, uint64_t id, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

void ConnectionGate::Run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
  constexpr int kEvents = 64;
  epoll_event events[kEvents];
  while (true) {
    const int count = epoll_wait(epoll_fd_, events, kEvents, WaitMilliseconds());
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kStopId) return;
      if (id == kRoomId) continue;
      if (id < kFirstConnectionId) {
        for (int k = 0; k < kEvents && AcceptFrom(listeners_[id - kFirstListenerId]); ++k) {
        }
      } else {
        OnEvents(id, events[i].events);
      }
    }
    HandOverWaiting();
    CloseTalkative();
  }
}

int ConnectionGate::WaitMilliseconds() const {
  MutexLock lock(&mu_);
  const absl::Time look = bounds_bytes() && has_unknown() ? next_look_ : absl::InfiniteFuture();
  const absl::Time next = std::min(look, queue_.NextRoom());
  if (next == absl::InfiniteFuture()) return -1;
  const absl::Duration wait = std::max(next - absl::Now(), absl::ZeroDuration());
  return static_cast<int>(absl::ToInt64Milliseconds(wait + absl::Microseconds(999)));
}

void ConnectionGate::OnEvents(uint64_t id, uint32_t events) {
  MutexLock lock(&mu_);
  if ((events & ~static_cast<uint32_t>(EPOLLIN)) != 0) {
    Forget(id);
    return;
  }
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& connection = *found->second;
  // From now on only the connection's end is of interest.
  epoll_event end{};
  end.events = EPOLLRDHUP | EPOLLET;
  end.data.u64 = id;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, connection.fd, &end);
  queue_.Add(connection.address, id);
}

void ConnectionGate::HandOverWaiting() {
  for (int fd = TakeWaiting(); fd >= 0; fd = TakeWaiting()) hand_over_(fd);
}

int ConnectionGate::TakeWaiting() {
  MutexLock lock(&mu_);
  const std::optional<HandOverQueue::Next> next = queue_.Take(absl::Now());
  if (!next.has_value()) return -1;
  if (next->displaced.has_value()) {
    Close(*next->displaced, absl::StrCat("more than ", limits_.hand_over.of_address,
                                         " connections of its address whose callers have not shown "
                                         "that they belong to the job"));
  }
  Connection& connection = *connections_.at(next->id);
  connection.next_count = absl::InfinitePast();
  return std::exchange(connection.waiting_fd, -1);
}

bool ConnectionGate::AcceptFrom(int listener) {
  SocketAddress peer;
  const int fd = accept4(listener, peer.get(), &peer.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return false;
    MutexLock lock(&mu_);
    // The connection is still waiting, so epoll_wait() would return at once.
    if (!CloseOneUnknown()) usleep(kPauseMicroseconds);
    return false;
  }
  auto connection = std::make_unique<Connection>();
  connection->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (connection->fd < 0) {
    close(fd);
    return true;
  }
  connection->waiting_fd = fd;
  connection->peer = PeerName(peer);
  connection->address = ClientOf(peer.host());
  connection->since = connection->modest_at = absl::Now();
  SetOption(fd, TCP_NODELAY, 1);
  SetOption(fd, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
  Keep(std::move(connection));
  return true;
}

void ConnectionGate::Keep(std::unique_ptr<Connection> connection) {
  MutexLock lock(&mu_);
  if (connections_.size() >= limits_.connections && !CloseOneUnknown()) {
    ++closed_;
    return;
  }
  const uint64_t id = next_id_++;
  connection->id = id;
  unknown_[id] = connection.get();
  {
    MutexLock unknown_lock(&unknown_mu_);
    unknown_by_peer_[connection->peer] = id;
  }
  ++unknown_of_[connection->address];
  ++num_unknown_;
  const int fd = connection->fd;
  connections_[id] = std::move(connection);
  Watch(fd, id, EPOLLIN | EPOLLRDHUP | EPOLLET);
  if (num_unknown_ > limits_.unknown) CloseOneUnknown();
}

void ConnectionGate::Know(const std::string& peer) {
  if (!has_unknown()) return;
  const std::string name = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  uint64_t id = 0;
  {
    MutexLock lock(&unknown_mu_);
    const auto found = unknown_by_peer_.find(name);
    if (found == unknown_by_peer_.end()) return;
    id = found->second;
  }
  MutexLock lock(&mu_);
  const auto found = unknown_.find(id);
  if (found == unknown_.end()) return;
  NoLongerUnknown(found->second);
  if (queue_.waiting()) eventfd_write(room_fd_, 1);
}

void ConnectionGate::NoLongerUnknown(Connection* connection) {
  if (std::exchange(connection->known, true)) return;
  queue_.Remove(connection->address, connection->id);
  unknown_.erase(connection->id);
  {
    MutexLock lock(&unknown_mu_);
    unknown_by_peer_.erase(connection->peer);
  }
  const auto count = unknown_of_.find(connection->address);
  if (--count->second == 0) unknown_of_.erase(count);
  --num_unknown_;
}

void ConnectionGate::Forget(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  NoLongerUnknown(found->second.get());
  connections_.erase(found);
}

void ConnectionGate::Close(uint64_t id, absl::string_view why) {
  const Connection& connection = *connections_.at(id);
  ++closed_;
  if (const std::optional<int64_t> left_out = closings_.Admit()) {
    LogWarning("closed the connection of ", connection.peer, ": ", why,
               *left_out == 0 ? "" : absl::StrCat(" (and ", *left_out, " before it)"));
  }
  shutdown(connection.fd, SHUT_RDWR);
  Forget(id);
}

bool ConnectionGate::CloseOneUnknown() {
  const auto most =
      std::max_element(unknown_of_.begin(), unknown_of_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == unknown_of_.end()) return false;
  const auto oldest =
      std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
        return !entry.second->known && entry.second->address == most->first;
      });
  Close(oldest->first, absl::StrCat("more than ", limits_.unknown,
                                    " connections whose callers have not shown that they belong "
                                    "to the job"));
  return true;
}

void ConnectionGate::CountBytes(absl::Time now) {
  for (const auto& [id, connection] : unknown_) {
    if (now < connection->next_count) continue;
    const bool waits = connection->waiting_fd >= 0;
    connection->next_count = now + (waits ? kWaitingTick : absl::ZeroDuration());
    const int64_t granted =
        absl::ToInt64Seconds(now - connection->since) * limits_.unknown_bytes_per_second;
    connection->excess = BytesReceived(connection->fd) - granted;
    if (connection->excess <= limits_.unknown_bytes) connection->modest_at = now;
  }
}

void ConnectionGate::CloseTalkative() {
  const absl::Time now = absl::Now();
  if (!bounds_bytes() || !has_unknown() || now < next_look_) return;
  next_look_ = now + kTick;
  MutexLock lock(&mu_);
  CountBytes(now);
  std::vector<Connection*> talkative;
  int64_t all = 0;
  for (const auto& [id, connection] : unknown_) {
    if (connection->excess <= 0) continue;
    talkative.push_back(connection);
    all += connection->excess;
  }
  std::sort(talkative.begin(), talkative.end(),
            [](const Connection* a, const Connection* b) { return a->excess > b->excess; });
  for (const Connection* connection : talkative) {
    const bool for_long = connection->excess > limits_.unknown_bytes &&
                          now > connection->modest_at + limits_.patience;
    const bool too_much = for_long || connection->excess > limits_.most_unknown_bytes;
    if (!too_much && all <= limits_.all_unknown_bytes) continue;
    all -= connection->excess;
    queue_.Delay(connection->address, now + limits_.delay);
    Close(connection->id, absl::StrCat("it has sent ", connection->excess,
                                       " bytes, and its callers have not shown that they "
                                       "belong to the job; expected at most ",
                                       limits_.unknown_bytes, ", and ", limits_.all_unknown_bytes,
                                       " of all such connections"));
  }
}

ConnectionGate::Counts ConnectionGate::counts() const {
  MutexLock lock(&mu_);
  return {connections_.size(), num_unknown_, closed_};
}

}  // namespace keelson
