#include "tests/stranger/http2_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/support/system_error.h"

namespace keelson {
namespace {

// No more bytes of bodies wait to be sent, so that a stalled server stalls the stranger.
constexpr size_t kMostWaitingBytes = 1 << 20;
constexpr size_t kReceiveBytes = 1 << 16;

uint32_t NumberOf(absl::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4)) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

bool WouldBlock() { return errno == EAGAIN || errno == EINTR || errno == ENOTCONN; }

}  // namespace

absl::StatusOr<int> ConnectFrom(const std::string& source, int port) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0) return SystemError("socket");
  // Closing sends a reset, so that ports are free again at once.
  const linger reset = {1, 0};
  const int yes = 1;
  setsockopt(made, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  setsockopt(made, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
  const sockaddr_in from = AddressOf(source, 0), to = AddressOf("127.0.0.1", port);
  const bool connected = bind(made, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) == 0 &&
                         (connect(made, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0 ||
                          errno == EINPROGRESS);
  if (connected) return made;
  const absl::Status error = SystemError(absl::StrCat("connect to port ", port));
  close(made);
  return error;
}

absl::StatusOr<std::unique_ptr<Http2Connection>> Http2Connection::Open(const std::string& source,
                                                                       int port) {
  ASSIGN_OR_RETURN(const int socket, ConnectFrom(source, port));
  return std::unique_ptr<Http2Connection>(new Http2Connection(socket));
}

Http2Connection::~Http2Connection() { close(socket_); }

uint32_t Http2Connection::Call(absl::string_view method, const HeaderList& metadata, CallBody body,
                               bool ends) {
  const uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  Send(HeaderFrames(stream, HeaderBlock(CallHeaders(method, metadata))));
  windows_[stream] = first_window_;
  bodies_[stream] = {std::move(body), ends};
  return stream;
}

void Http2Connection::Reset(uint32_t stream) {
  constexpr uint32_t kCancel = 8;
  Send(Frame(FrameType::kRstStream, 0, stream, NumberBytes(kCancel)));
  End(stream);
}

void Http2Connection::End(uint32_t stream) {
  if (windows_.erase(stream) == 0) return;
  bodies_.erase(stream);
  ++ended_;
}

bool Http2Connection::Pump(absl::Duration wait, bool takes) {
  FillFromBodies();
  pollfd waiting = {socket_,
                    static_cast<short>((takes ? POLLIN : 0) | (out_.empty() ? 0 : POLLOUT)), 0};
  if (poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) <= 0) return true;
  if ((waiting.revents & (POLLERR | POLLHUP)) != 0 || (takes && !Receive())) return false;
  return SendOut();
}

void Http2Connection::FillFromBodies() {
  for (auto it = bodies_.begin(); it != bodies_.end() && out_.size() < kMostWaitingBytes;) {
    auto& [stream, pending] = *it;
    auto& [text, zeros] = pending.body;
    int64_t& window = windows_[stream];
    const int64_t left = static_cast<int64_t>(text.size()) + zeros;
    const auto size =
        std::min({left, window, connection_window_, static_cast<int64_t>(kMaxFrameBytes)});
    if (size <= 0 && left > 0) {
      ++it;
      continue;
    }
    std::string piece = text.substr(0, static_cast<size_t>(size));
    text.erase(0, piece.size());
    const int64_t more = size - static_cast<int64_t>(piece.size());
    piece.append(static_cast<size_t>(more), '\0');
    zeros -= more;
    window -= size;
    connection_window_ -= size;
    const bool last = size == left;
    if (size > 0 || pending.ends) {
      Send(Frame(FrameType::kData, last && pending.ends ? kEndStream : 0, stream, piece));
    }
    it = last ? bodies_.erase(it) : std::next(it);
  }
}

bool Http2Connection::SendOut() {
  while (!out_.empty()) {
    const ssize_t sent = send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return WouldBlock();
    out_.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

bool Http2Connection::Receive() {
  char bytes[kReceiveBytes];
  const ssize_t size = recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (size < 0) return WouldBlock();
  in_.append(bytes, static_cast<size_t>(size));
  TakeFrames();
  return size > 0;
}

void Http2Connection::TakeFrames() {
  absl::string_view left = in_;
  while (left.size() >= kFrameHeaderBytes) {
    const size_t size = NumberOf(left) >> 8;
    if (left.size() < kFrameHeaderBytes + size) break;
    TakeFrame(static_cast<FrameType>(left[3]), static_cast<uint8_t>(left[4]),
              NumberOf(left.substr(5)), left.substr(kFrameHeaderBytes, size));
    left.remove_prefix(kFrameHeaderBytes + size);
  }
  in_.erase(0, in_.size() - left.size());
}

void Http2Connection::TakeFrame(FrameType type, uint8_t flags, uint32_t stream,
                                absl::string_view payload) {
  const bool acknowledged = (flags & kAck) != 0;
  bool over = type == FrameType::kRstStream;
  if (type == FrameType::kSettings && !acknowledged) {
    TakeSettings(payload);
    Send(Frame(FrameType::kSettings, kAck, 0, ""));
  } else if (type == FrameType::kPing && !acknowledged) {
    Send(Frame(FrameType::kPing, kAck, 0, payload));
  } else if (type == FrameType::kWindowUpdate) {
    if (stream == 0) connection_window_ += NumberOf(payload);
    if (windows_.contains(stream)) windows_[stream] += NumberOf(payload);
  } else if (type == FrameType::kData || type == FrameType::kHeaders) {
    over = (flags & kEndStream) != 0;
  }
  if (type == FrameType::kData && !payload.empty()) {
    if (std::exchange(answered_stream_, stream) != stream) {
      ++answered_;
      answer_.clear();
    }
    answer_.append(payload.data(), payload.size());
    const std::string taken = NumberBytes(static_cast<uint32_t>(payload.size()));
    Send(Frame(FrameType::kWindowUpdate, 0, 0, taken));
    if (!over) Send(Frame(FrameType::kWindowUpdate, 0, stream, taken));
  }
  if (over) End(stream);
}

void Http2Connection::TakeSettings(absl::string_view payload) {
  constexpr size_t kEntryBytes = 6;
  constexpr uint32_t kInitialWindow = 4;
  for (; payload.size() >= kEntryBytes; payload.remove_prefix(kEntryBytes)) {
    if (NumberOf(payload) >> 16 != kInitialWindow) continue;
    const int64_t window = NumberOf(payload.substr(2));
    for (auto& [stream, left] : windows_) left += window - first_window_;
    first_window_ = window;
  }
}

}  // namespace keelson
