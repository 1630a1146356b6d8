// A connection to Redis on which commands are sent while answers to earlier ones arrive (RESP 2,
// redis.io/docs/reference/protocol-spec).
#ifndef KEELSON_BENCH_ROWS_REDIS_CONNECTION_H_
#define KEELSON_BENCH_ROWS_REDIS_CONNECTION_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/socket.h"

namespace keelson::bench {

// Used by one thread.
class RedisConnection {
 public:
  // Errors of the system.
  static absl::StatusOr<RedisConnection> Open(const std::string& address);

  // Commands that are to be sent: "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".
  std::string* commands() { return &commands_; }
  // Sends of them and receives what can be, at least something. UNAVAILABLE: the server has closed.
  absl::Status Exchange();

  // What has been received and not taken.
  absl::string_view received() const {
    return absl::string_view(buffer_.data() + begin_, end_ - begin_);
  }
  void Take(size_t size) { begin_ += size; }

 private:
  explicit RedisConnection(Socket socket) : socket_(std::move(socket)) {}

  // Whether something was sent or received.
  absl::StatusOr<bool> Send();
  absl::StatusOr<bool> Receive();
  void Wait() const;

  Socket socket_;
  std::string commands_;
  size_t sent_ = 0;  // of them
  std::vector<char> buffer_ = std::vector<char>(1 << 20);
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_REDIS_CONNECTION_H_
