#include "core/http/connection.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"

namespace keelson {

SocketStream::SocketStream(int fd, absl::Duration timeout) : fd_(fd), timeout_(timeout) {
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  // Without this option a small event would not be sent at once.
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  RestartTimeout();
}

size_t SocketStream::Read(char* out, size_t size) {
  const size_t count = Receive(out, size);
  moved_ += static_cast<int64_t>(count);
  return count;
}

size_t SocketStream::Receive(char* out, size_t size) {
  while (WaitFor(POLLIN)) {
    const ssize_t count = recv(fd_, out, size, 0);
    if (count > 0) return count;
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) return 0;
  }
  return 0;
}

bool SocketStream::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(count);
      moved_ += count;
    } else if ((errno != EAGAIN && errno != EINTR) || !WaitFor(POLLOUT)) {
      return false;
    }
  }
  return true;
}

void SocketStream::SetTimeout(absl::Duration from_now) {
  deadline_ = Clock::Real()->Monotonic() + from_now;
  progress_before_ = Progress();
}

void SocketStream::Finish() {
  shutdown(fd_, SHUT_WR);
  char dropped[4096];
  while (Receive(dropped, sizeof(dropped)) > 0) continue;
}

bool SocketStream::ClientHasGone() {
  char dropped[1024];
  const ssize_t count = recv(fd_, dropped, sizeof(dropped), MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

bool SocketStream::WaitFor(int16_t event) const {
  while (true) {
    const absl::Duration left = TimeLeft();
    if (left <= absl::ZeroDuration()) return false;
    pollfd state = {fd_, event, 0};
    const int64_t milliseconds = absl::ToInt64Milliseconds(std::min(left, absl::Hours(1)));
    const int ready = poll(&state, 1, static_cast<int>(milliseconds) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

absl::Duration SocketStream::TimeLeft() const {
  const double seconds = static_cast<double>(Progress() - progress_before_) / kBytesPerSecond;
  return deadline_ + absl::Seconds(seconds) - Clock::Real()->Monotonic();
}

int64_t SocketStream::Progress() const {
  // The client has not yet received the bytes in the system's send buffer, which may be megabytes.
  int on_the_way = 0;
  ioctl(fd_, SIOCOUTQ, &on_the_way);
  return moved_ - on_the_way;
}

}  // namespace keelson
