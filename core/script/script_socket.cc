#include "core/script/script_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

struct Header {
  uint32_t kind;
  uint32_t length;
};

absl::Status Gone() { return absl::CancelledError("the script has ended"); }

absl::Status Refused(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("the script's socket: ", what, ": ", strerror(errno)));
}

bool IsGone(int error) { return error == EPIPE || error == ECONNRESET || error == ENOTCONN; }

// Attaches the descriptor to the message. `control` has room for it.
void Attach(int fd, msghdr* message, char* control, size_t size) {
  message->msg_control = control;
  message->msg_controllen = size;
  cmsghdr* const attached = CMSG_FIRSTHDR(message);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof(fd));
  std::memcpy(CMSG_DATA(attached), &fd, sizeof(fd));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScriptSocket>> ScriptSocket::Create(int fd, StopSignal* gone) {
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
    return absl::InvalidArgumentError(
        absl::StrCat("--script_socket: expected the descriptor of a SOCK_SEQPACKET socket, which "
                     "the script that starts this program has made, found ",
                     fd));
  }
  const int wake = eventfd(0, EFD_CLOEXEC);
  if (wake < 0) return Refused("eventfd");
  return std::unique_ptr<ScriptSocket>(new ScriptSocket(fd, wake, gone));
}

ScriptSocket::ScriptSocket(int fd, int wake, StopSignal* gone)
    : fd_(fd), wake_(wake), gone_(gone), buffer_(kMostMessageBytes, '\0') {
  watch_ = Thread([this] { Watch(); });
}

ScriptSocket::~ScriptSocket() {
  const uint64_t one = 1;
  if (write(wake_, &one, sizeof(one)) < 0) shutdown(fd_, SHUT_RDWR);
  watch_.Join();
  close(wake_);
  close(fd_);
}

void ScriptSocket::Watch() {
  while (true) {
    pollfd fds[] = {{fd_, POLLRDHUP, 0}, {wake_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return gone_->Raise();
    if (fds[1].revents != 0) return;
    if ((fds[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return gone_->Raise();
  }
}

absl::Status ScriptSocket::Send(const ScriptMessage& message, int fd) {
  Header header = {static_cast<uint32_t>(message.kind), static_cast<uint32_t>(message.body.size())};
  iovec parts[] = {{&header, sizeof(header)},
                   {const_cast<char*>(message.body.data()), message.body.size()}};
  msghdr packet = {};
  packet.msg_iov = parts;
  packet.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) Attach(fd, &packet, control, sizeof(control));
  MutexLock lock(&send_mu_);
  while (sendmsg(fd_, &packet, MSG_NOSIGNAL) < 0) {
    if (IsGone(errno)) return Gone();
    if (errno != EINTR) return Refused("sendmsg");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ScriptMessage>> ScriptSocket::Receive(absl::Duration timeout) {
  pollfd waiting = {fd_, POLLIN, 0};
  const int ready = poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (ready == 0 || (ready < 0 && errno == EINTR)) return std::nullopt;
  const ssize_t size = recv(fd_, buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (size == 0 || (size < 0 && IsGone(errno))) return Gone();
  if (size < 0)
    return errno == EAGAIN ? absl::StatusOr<std::optional<ScriptMessage>>(std::nullopt)
                           : Refused("recv");
  Header header = {};
  const auto bytes = static_cast<size_t>(size);
  if (bytes >= sizeof(header)) std::memcpy(&header, buffer_.data(), sizeof(header));
  if (bytes < sizeof(header) || bytes > buffer_.size() || header.length != bytes - sizeof(header)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the script's message: expected a header and as many bytes as it says, at "
                     "most ",
                     kMostMessageBytes, ", found ", bytes, " bytes"));
  }
  return ScriptMessage{static_cast<ScriptMessageKind>(header.kind),
                       buffer_.substr(sizeof(header), header.length)};
}

}  // namespace keelson
