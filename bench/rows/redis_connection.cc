#include "bench/rows/redis_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

bool MustWait(ssize_t size) { return size < 0 && (errno == EAGAIN || errno == EINTR); }

}  // namespace

absl::StatusOr<RedisConnection> RedisConnection::Open(const std::string& address) {
  ASSIGN_OR_RETURN(Socket socket, Connect(address));
  return RedisConnection(std::move(socket));
}

absl::Status RedisConnection::Exchange() {
  while (true) {
    ASSIGN_OR_RETURN(const bool sent, Send());
    ASSIGN_OR_RETURN(const bool received, Receive());
    if (sent || received) return absl::OkStatus();
    Wait();
  }
}

absl::StatusOr<bool> RedisConnection::Send() {
  if (sent_ == commands_.size()) return false;
  const ssize_t size = send(socket_.descriptor(), commands_.data() + sent_,
                            commands_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (MustWait(size)) return false;
  if (size < 0) return absl::ErrnoToStatus(errno, "sending to Redis");
  sent_ += static_cast<size_t>(size);
  if (sent_ == commands_.size()) {
    commands_.clear();
    sent_ = 0;
  }
  return true;
}

absl::StatusOr<bool> RedisConnection::Receive() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  const ssize_t size =
      recv(socket_.descriptor(), buffer_.data() + end_, buffer_.size() - end_, MSG_DONTWAIT);
  if (MustWait(size)) return false;
  if (size < 0) return absl::ErrnoToStatus(errno, "receiving from Redis");
  if (size == 0) return absl::UnavailableError("Redis has closed the connection");
  end_ += static_cast<size_t>(size);
  return true;
}

void RedisConnection::Wait() const {
  const bool sending = sent_ < commands_.size();
  pollfd ready{socket_.descriptor(), static_cast<short>(POLLIN | (sending ? POLLOUT : 0)), 0};
  poll(&ready, 1, -1);
}

}  // namespace keelson::bench
