// A client's connection: its socket, with a deadline.
#ifndef KEELSON_CORE_HTTP_CONNECTION_H_
#define KEELSON_CORE_HTTP_CONNECTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace keelson {

// One deadline holds for all reads and writes until it is set again: with a timeout for each read,
// a client that sends single bytes would never time out. Each kBytesPerSecond that the client sends
// or takes extends it by a second, so that a transfer may last while it makes progress. For one
// thread.
class SocketStream {
 public:
  // The rate below which a client is cut off.
  static constexpr int64_t kBytesPerSecond = 64 * 1024;

  // Does not own the socket, which is set to not blocking.
  SocketStream(int fd, absl::Duration timeout);

  // Waits for bytes, writes at most `size` of them to `out`, and returns their number. 0: no more
  // will come, or not in time.
  size_t Read(char* out, size_t size);

  // Writes all bytes. False: the client has gone, or has not taken them in time.
  bool Write(absl::string_view bytes);

  // Restores the constructor's timeout.
  void RestartTimeout() { SetTimeout(timeout_); }
  // Sets the deadline.
  void SetTimeout(absl::Duration from_now);

  // Closes the sending side and reads the client's remaining bytes, so that it gets the answer:
  // closing a socket with unread bytes makes the client's system discard what it has received.
  // Bytes that are read here do not extend the deadline.
  void Finish();

  // True: the client has closed the connection. Drops bytes that the client has sent. Does not
  // wait.
  bool ClientHasGone();

 private:
  // Reads like Read, without counting.
  size_t Receive(char* out, size_t size);
  // False: the deadline has passed.
  bool WaitFor(int16_t event) const;
  absl::Duration TimeLeft() const;
  // The number of bytes that the client has sent and taken, from an arbitrary start.
  int64_t Progress() const;

  const int fd_;
  const absl::Duration timeout_;
  int64_t moved_ = 0;  // bytes read and written
  // The deadline without progress, and the progress when it was set.
  absl::Duration deadline_;
  int64_t progress_before_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_CONNECTION_H_
