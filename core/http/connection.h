// A client's connection: its socket, with a deadline.
#ifndef KEELSON_CORE_HTTP_CONNECTION_H_
#define KEELSON_CORE_HTTP_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/http/byte_stream.h"

namespace keelson {

// One deadline for all that is read and written until it is set anew: a timeout for each read would
// never meet a client that sends a byte now and then. It moves on with what the client sends and
// takes, by a second for kBytesPerSecond, so that a transfer may last while it makes progress. For
// one thread.
class SocketStream : public HttpStream {
 public:
  // What a client that is not cut off sends or takes at least.
  static constexpr int64_t kBytesPerSecond = 64 * 1024;

  // Does not own the socket, which is set to not blocking.
  SocketStream(int fd, absl::Duration timeout);

  size_t Read(char* out, size_t size) override;
  bool Write(absl::string_view bytes) override;

  // To the constructor's.
  void RestartTimeout() override { SetTimeout(timeout_); }
  // Sets the deadline.
  void SetTimeout(absl::Duration from_now);

  // Ends our side and reads what the client has still to say, so that it gets the answer: to close
  // a socket with bytes unread makes the client's system forget what it has received. What is read
  // here does not move the deadline.
  void Finish();

  // True: the client has closed the connection. What it says otherwise is dropped. Does not wait.
  bool ClientHasGone();

 private:
  // Read, without counting.
  size_t Receive(char* out, size_t size);
  // False: the deadline has passed.
  bool WaitFor(int16_t event) const;
  absl::Duration TimeLeft() const;
  // Bytes that the client has sent and taken; from an unknown start.
  int64_t Progress() const;

  const int fd_;
  const absl::Duration timeout_;
  int64_t moved_ = 0;  // bytes read and written
  // The deadline without progress, and the progress when it was set.
  absl::Duration deadline_;
  int64_t progress_before_ = 0;
};

// The numeric address of the socket's other end: "192.0.2.1", "2001:db8::1"; empty: unknown.
std::string PeerAddress(int fd);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_CONNECTION_H_
