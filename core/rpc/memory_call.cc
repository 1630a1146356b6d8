#include "core/rpc/memory_call.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace keelson {
namespace {

// A message of one packet with room for a descriptor.
class PacketMessage {
 public:
  explicit PacketMessage(absl::Span<iovec> parts) {
    message_.msg_iov = parts.data();
    message_.msg_iovlen = parts.size();
  }
  PacketMessage(const PacketMessage&) = delete;
  PacketMessage& operator=(const PacketMessage&) = delete;

  void Attach(int fd) {
    MakeRoom();
    cmsghdr* const attached = CMSG_FIRSTHDR(&message_);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(sizeof(fd));
    std::memcpy(CMSG_DATA(attached), &fd, sizeof(fd));
  }
  void MakeRoom() {
    message_.msg_control = control_.data();
    message_.msg_controllen = control_.size();
  }
  // -1: none came.
  int Attached() {
    const cmsghdr* const attached = CMSG_FIRSTHDR(&message_);
    if (attached == nullptr || attached->cmsg_type != SCM_RIGHTS) return -1;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(attached), sizeof(fd));
    return fd;
  }
  msghdr* get() { return &message_; }

 private:
  msghdr message_ = {};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control_ = {};
};

bool IsGone(int error) { return error == EPIPE || error == ECONNRESET || error == ENOTCONN; }

}  // namespace

absl::Status SendPacket(int socket, const void* head, size_t head_bytes, absl::string_view rest,
                        int fd, PacketWait wait) {
  std::array<iovec, 2> parts = {iovec{const_cast<void*>(head), head_bytes},
                                iovec{const_cast<char*>(rest.data()), rest.size()}};
  PacketMessage message(absl::MakeSpan(parts));
  if (fd >= 0) message.Attach(fd);
  const int flags = MSG_NOSIGNAL | (wait == PacketWait::kNever ? MSG_DONTWAIT : 0);
  while (sendmsg(socket, message.get(), flags) < 0) {
    if (errno != EINTR) return absl::UnavailableError(absl::StrCat("sendmsg: ", strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status ReceivePacket(int socket, Packet* packet) {
  packet->bytes.resize(kMostPacketBytes);
  std::array<iovec, 1> parts = {iovec{packet->bytes.data(), packet->bytes.size()}};
  PacketMessage message(absl::MakeSpan(parts));
  message.MakeRoom();
  ssize_t size = recvmsg(socket, message.get(), MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR) size = recvmsg(socket, message.get(), MSG_CMSG_CLOEXEC);
  if (size == 0 || (size < 0 && IsGone(errno))) return absl::CancelledError("it has gone");
  if (size < 0) return absl::UnavailableError(absl::StrCat("recvmsg: ", strerror(errno)));
  packet->fd = message.Attached();
  packet->bytes.resize(static_cast<size_t>(size));
  if ((message.get()->msg_flags & MSG_TRUNC) == 0) return absl::OkStatus();
  if (packet->fd >= 0) close(packet->fd);
  packet->fd = -1;
  return absl::InvalidArgumentError(absl::StrCat("expected a packet of at most ", kMostPacketBytes,
                                                 " bytes, found a larger one"));
}

uid_t PeerUser(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.uid
                                                                        : static_cast<uid_t>(-1);
}

}  // namespace keelson
