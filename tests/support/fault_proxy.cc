#include "tests/support/fault_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/random.h"
#include "tests/support/system_error.h"

namespace keelson {
namespace {

constexpr int kBacklog = 128;
constexpr size_t kReadBytes = 64 * 1024;
// A stream holds no more; its sender waits, as it would on a long line.
constexpr size_t kLineBytes = 8 << 20;

sockaddr_in LoopbackAddress(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int NewSocket() { return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

// Makes close() send a reset.
void CloseWithReset(int fd) {
  if (fd < 0) return;
  const linger now = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(fd);
}

void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

struct Chunk {
  absl::Time due;
  std::string bytes;
  size_t sent = 0;
};

}  // namespace

// One direction of a connection.
struct FaultProxy::Stream {
  int from = -1;
  int to = -1;
  std::deque<Chunk> chunks;
  size_t held_bytes = 0;
  absl::Time line_free;  // when a byte more could leave
  bool ended = false;    // `from` has said so
  bool closed = false;   // and `to` knows
  bool blocked = false;  // `to` takes no more for now
};

struct FaultProxy::Connection {
  int64_t number = 0;
  int caller = -1;
  int target = -1;
  bool connected = false;  // to the target
  int64_t bytes_to_reset = 0;
  Stream request;
  Stream response;
};

absl::StatusOr<std::unique_ptr<FaultProxy>> FaultProxy::Start(int target_port, uint64_t seed,
                                                              int listen_port) {
  const int listener = NewSocket();
  if (listener < 0) return SystemError("a proxy's socket");
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = LoopbackAddress(listen_port);
  socklen_t size = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, kBacklog) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const absl::Status status = SystemError(absl::StrCat("a proxy's port ", listen_port));
    close(listener);
    return status;
  }
  const int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake < 0) {
    close(listener);
    return SystemError("a proxy's eventfd");
  }
  std::unique_ptr<FaultProxy> proxy(
      new FaultProxy(target_port, seed, listener, ntohs(address.sin_port), wake));
  proxy->thread_ = std::thread([p = proxy.get()] { p->Run(); });
  return proxy;
}

FaultProxy::FaultProxy(int target_port, uint64_t seed, int listener, int port, int wake)
    : seed_(seed), listener_(listener), port_(port), wake_(wake), target_port_(target_port) {}

FaultProxy::~FaultProxy() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
  }
  eventfd_write(wake_, 1);
  thread_.join();
  close(listener_);
  close(wake_);
}

std::string FaultProxy::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FaultProxy::LeadTo(int target_port) {
  MutexLock lock(&mu_);
  target_port_ = target_port;
}

void FaultProxy::Set(const LinkConditions& conditions) {
  MutexLock lock(&mu_);
  conditions_ = conditions;
  for (const auto& connection : open_) DrawLifetime(connection.get());
  Hand(/*reset=*/false);
}

void FaultProxy::Reset() {
  MutexLock lock(&mu_);
  Hand(/*reset=*/true);
}

void FaultProxy::Hand(bool reset) {
  reset_wanted_ |= reset;
  const int64_t order = ++orders_;
  eventfd_write(wake_, 1);
  while (obeyed_orders_ < order) obeyed_.Wait(&mu_);
}

int64_t FaultProxy::connections() const {
  MutexLock lock(&mu_);
  return connections_;
}

int64_t FaultProxy::resets() const {
  MutexLock lock(&mu_);
  return resets_;
}

int64_t FaultProxy::forwarded_bytes() const {
  MutexLock lock(&mu_);
  return forwarded_bytes_;
}

void FaultProxy::Run() {
  while (true) {
    WaitForEvents();
    MutexLock lock(&mu_);
    if (stop_) {
      for (const auto& connection : open_) Close(connection.get());
      open_.clear();
      return;
    }
    TakeOrders();
    AcceptCallers();
    for (size_t i = 0; i < open_.size();) {
      if (Serve(open_[i].get())) {
        ++i;
      } else {
        open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
}

void FaultProxy::WaitForEvents() {
  std::vector<pollfd> events = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
  absl::Time due = absl::InfiniteFuture();
  {
    MutexLock lock(&mu_);
    // What is held is not asked about: it would be ready all the time.
    const bool moves = conditions_.flow == Flow::kForward;
    for (size_t i = 0; moves && i < open_.size(); ++i) {
      const Connection& connection = *open_[i];
      if (!connection.connected) {
        events.push_back({connection.target, POLLOUT, 0});
        continue;
      }
      for (const Stream* stream : {&connection.request, &connection.response}) {
        if (!stream->ended && stream->held_bytes < kLineBytes) {
          events.push_back({stream->from, POLLIN, 0});
        }
        if (stream->chunks.empty()) continue;
        if (stream->blocked) {
          events.push_back({stream->to, POLLOUT, 0});
        } else {
          due = std::min(due, stream->chunks.front().due);
        }
      }
    }
  }
  timespec timeout{};
  if (due != absl::InfiniteFuture()) {
    timeout = absl::ToTimespec(std::max(due - absl::Now(), absl::ZeroDuration()));
  }
  ppoll(events.data(), events.size(), due == absl::InfiniteFuture() ? nullptr : &timeout, nullptr);
}

void FaultProxy::TakeOrders() {
  eventfd_t ignored;
  eventfd_read(wake_, &ignored);
  if (reset_wanted_) {
    for (const auto& connection : open_) Close(connection.get());
    resets_ += static_cast<int64_t>(open_.size());
    open_.clear();
    reset_wanted_ = false;
  }
  obeyed_orders_ = orders_;
  obeyed_.NotifyAll();
}

void FaultProxy::AcceptCallers() {
  while (true) {
    const int caller = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (caller < 0) return;
    if (conditions_.flow == Flow::kPartition) {
      CloseWithReset(caller);
      continue;
    }
    auto connection = std::make_unique<Connection>();
    connection->number = connections_++;
    connection->caller = caller;
    connection->target = NewSocket();
    const sockaddr_in address = LoopbackAddress(target_port_);
    if (connect(connection->target, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
            0 &&
        errno != EINPROGRESS) {
      Close(connection.get());
      continue;
    }
    SendAtOnce(caller);
    SendAtOnce(connection->target);
    connection->request.from = connection->response.to = caller;
    connection->request.to = connection->response.from = connection->target;
    DrawLifetime(connection.get());
    open_.push_back(std::move(connection));
  }
}

void FaultProxy::DrawLifetime(Connection* connection) {
  if (conditions_.mean_bytes_to_reset == 0) {
    connection->bytes_to_reset = INT64_MAX;
    return;
  }
  const auto draw = static_cast<uint64_t>(draws_++);
  const double uniform =
      UniformFloat(Philox(seed_, static_cast<uint64_t>(connection->number), draw)[0]);
  connection->bytes_to_reset =
      1 + static_cast<int64_t>(-std::log(1 - uniform) *
                               static_cast<double>(conditions_.mean_bytes_to_reset));
}

void FaultProxy::Close(Connection* connection) {
  CloseWithReset(connection->caller);
  CloseWithReset(connection->target);
}

bool FaultProxy::Serve(Connection* connection) {
  if (conditions_.flow != Flow::kForward) return true;
  if (!connection->connected && !FinishConnecting(connection)) return false;
  if (!connection->connected) return true;
  for (Stream* stream : {&connection->request, &connection->response}) {
    if (Receive(stream) && Deliver(connection, stream)) continue;
    Close(connection);
    return false;
  }
  if (!connection->request.closed || !connection->response.closed) return true;
  close(connection->caller);
  close(connection->target);
  return false;
}

bool FaultProxy::FinishConnecting(Connection* connection) {
  pollfd event = {connection->target, POLLOUT, 0};
  if (poll(&event, 1, 0) <= 0) return true;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(connection->target, SOL_SOCKET, SO_ERROR, &error, &size);
  connection->connected = error == 0;
  if (!connection->connected) Close(connection);
  return connection->connected;
}

bool FaultProxy::Receive(Stream* stream) {
  while (!stream->ended && stream->held_bytes < kLineBytes) {
    std::string bytes(kReadBytes, '\0');
    const ssize_t size = recv(stream->from, bytes.data(), bytes.size(), 0);
    if (size < 0) return WouldBlock();
    const absl::Time now = absl::Now();
    if (size == 0) {
      stream->ended = true;
      break;
    }
    bytes.resize(size);
    stream->line_free = std::max(stream->line_free, now);
    if (conditions_.bytes_per_second > 0) {
      stream->line_free += absl::Seconds(static_cast<double>(size) /
                                         static_cast<double>(conditions_.bytes_per_second));
    }
    stream->held_bytes += bytes.size();
    stream->chunks.push_back({stream->line_free + conditions_.delay, std::move(bytes)});
  }
  return true;
}

bool FaultProxy::Deliver(Connection* connection, Stream* stream) {
  stream->blocked = false;
  while (!stream->chunks.empty() && stream->chunks.front().due <= absl::Now()) {
    Chunk& chunk = stream->chunks.front();
    const size_t wanted =
        std::min<size_t>(chunk.bytes.size() - chunk.sent, connection->bytes_to_reset);
    const ssize_t size = send(stream->to, chunk.bytes.data() + chunk.sent, wanted, MSG_NOSIGNAL);
    if (size < 0) {
      stream->blocked = WouldBlock();
      return stream->blocked;
    }
    chunk.sent += size;
    stream->held_bytes -= size;
    forwarded_bytes_ += size;
    connection->bytes_to_reset -= size;
    if (connection->bytes_to_reset == 0) {
      ++resets_;
      return false;
    }
    if (chunk.sent == chunk.bytes.size()) stream->chunks.pop_front();
  }
  if (stream->ended && stream->chunks.empty() && !stream->closed) {
    shutdown(stream->to, SHUT_WR);
    stream->closed = true;
  }
  return true;
}

}  // namespace keelson
