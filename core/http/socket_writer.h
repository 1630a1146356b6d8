// Writes to a client at the client's pace.
#ifndef KEELSON_CORE_HTTP_SOCKET_WRITER_H_
#define KEELSON_CORE_HTTP_SOCKET_WRITER_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/http/transfer_deadline.h"

namespace keelson {

// For one thread, which waits for the client.
class SocketWriter {
 public:
  // Does not own the socket, which does not block.
  explicit SocketWriter(int fd) : fd_(fd), deadline_(fd, Clock::Real()) {}

  // Writes all bytes. False: the client has gone, or has not taken them within `timeout`, which
  // progress extends (TransferDeadline).
  bool Write(absl::string_view bytes, absl::Duration timeout);

  // True: the client has closed the connection. Drops bytes that the client has sent. Does not
  // wait.
  bool ClientHasGone() const;

 private:
  // Waits for place in the system's buffer. False: the deadline has passed.
  bool WaitForPlace() const;

  const int fd_;
  TransferDeadline deadline_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_SOCKET_WRITER_H_
