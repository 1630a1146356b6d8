#include "core/http/socket_writer.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace keelson {

bool SocketWriter::Write(absl::string_view bytes, absl::Duration timeout) {
  deadline_.Set(timeout);
  while (!bytes.empty()) {
    const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
      deadline_.Count(static_cast<size_t>(count));
    } else if ((errno != EAGAIN && errno != EINTR) || !WaitForPlace()) {
      return false;
    }
  }
  return true;
}

bool SocketWriter::ClientHasGone() const {
  char dropped[1024];
  const ssize_t count = recv(fd_, dropped, sizeof(dropped), MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

bool SocketWriter::WaitForPlace() const {
  while (true) {
    const absl::Duration left = deadline_.TimeLeft();
    if (left <= absl::ZeroDuration()) return false;
    pollfd state = {fd_, POLLOUT, 0};
    const int64_t milliseconds = absl::ToInt64Milliseconds(std::min(left, absl::Hours(1)));
    const int ready = poll(&state, 1, static_cast<int>(milliseconds) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace keelson
