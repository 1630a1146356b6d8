#include "core/http/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/socket_address.h"

namespace keelson {
namespace {

constexpr size_t kBufferBytes = 16 * 1024;
// What is dropped of a refused request at a time, so that no client keeps a thread busy.
constexpr size_t kDroppedBytes = size_t{1} << 20;
constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// As recv and send, but for interruptions by signals.
ssize_t ReceiveSome(int fd, char* out, size_t size) {
  ssize_t count = 0;
  do {
    count = recv(fd, out, size, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  return count;
}

ssize_t SendSome(int fd, absl::string_view bytes) {
  ssize_t count = 0;
  do {
    count = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  return count;
}

}  // namespace

ClientConnection::ClientConnection(int fd, uint64_t id, const Limits& limits, const Clock* clock)
    : fd_(fd),
      id_(id),
      limits_(limits),
      address_(SocketAddress::PeerOf(fd).host()),
      client_(ClientOf(address_)),
      deadline_(fd, clock),
      request_(limits.max_body_bytes) {
  // Without this option a small event would not be sent at once.
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  deadline_.Set(limits_.connection_timeout);
}

ClientConnection::~ClientConnection() {
  if (fd_ >= 0) close(fd_);
}

ClientConnection::Next ClientConnection::Advance() {
  switch (part_) {
    case Part::kReceiving:
      return Receive();
    case Part::kSending:
      return SendMore();
    default:
      return Drain();
  }
}

ClientConnection::Next ClientConnection::Receive() {
  char buffer[kBufferBytes];
  while (!request_.ended()) {
    const ssize_t count = ReceiveSome(fd_, buffer, sizeof(buffer));
    if (count > 0) {
      const bool begins = !std::exchange(begun_, true);
      if (begins) deadline_.Set(std::min(limits_.head_timeout, limits_.connection_timeout));
      Take(buffer, static_cast<size_t>(count));
      if (begins) return Next::kAdmit;
      continue;
    }
    if (count < 0 && errno != EAGAIN) return Next::kClose;
    if (count < 0 && !overdue()) return Next::kWait;
    request_.End();
  }
  return begun_ ? Next::kAnswer : Next::kClose;
}

void ClientConnection::Take(const char* bytes, size_t size) {
  deadline_.Count(size);
  const bool had_head = request_.has_head();
  request_.Add({bytes, size});
  if (had_head || !request_.has_head()) return;
  deadline_.Set(limits_.connection_timeout);
  // The system's buffer is empty, so it takes these few bytes.
  if (request_.awaits_continue()) SendSome(fd_, kContinue);
}

void ClientConnection::Send(std::string answer) {
  answer_ = std::move(answer);
  part_ = Part::kSending;
  deadline_.Set(limits_.connection_timeout);
}

ClientConnection::Next ClientConnection::SendMore() {
  while (sent_ < answer_.size()) {
    const ssize_t count = SendSome(fd_, absl::string_view(answer_).substr(sent_));
    if (count < 0 && errno != EAGAIN) return Next::kClose;
    if (count < 0) return overdue() ? Next::kClose : Next::kWait;
    sent_ += static_cast<size_t>(count);
    deadline_.Count(static_cast<size_t>(count));
  }
  if (request_.whole()) return Next::kClose;
  // Closing a socket with unread bytes would make the client's system discard the answer.
  shutdown(fd_, SHUT_WR);
  part_ = Part::kDraining;
  return Drain();
}

ClientConnection::Next ClientConnection::Drain() {
  char dropped[kBufferBytes];
  for (size_t i = 0; i < kDroppedBytes / kBufferBytes; ++i) {
    const ssize_t count = ReceiveSome(fd_, dropped, sizeof(dropped));
    if (count == 0 || (count < 0 && errno != EAGAIN)) return Next::kClose;
    // The bytes do not count: they are no progress.
    if (overdue()) return Next::kClose;
    if (count < 0) return Next::kWait;
  }
  return Next::kWait;
}

int ClientConnection::ReleaseSocket() { return std::exchange(fd_, -1); }

}  // namespace keelson
