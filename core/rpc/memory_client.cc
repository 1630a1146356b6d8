#include "core/rpc/memory_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/base/sealed_memory.h"
#include "core/base/status_macros.h"
#include "core/rpc/local_socket.h"
#include "core/rpc/memory_call.h"

namespace keelson {
namespace {

constexpr int kGreetingMilliseconds = 1000;
// Rooms begin where pages do.
constexpr size_t kAlignment = 4096;

absl::Status Ended() { return absl::UnavailableError("the connection has ended"); }

}  // namespace

// The parts of the memory that calls have: of each a request's, and behind it its answer's.
class MemoryClient::Rooms {
 public:
  Rooms(std::unique_ptr<SealedMemory> memory, size_t calls, size_t message_bytes)
      : memory_(std::move(memory)), message_bytes_(message_bytes), tags_(calls) {
    for (size_t room = calls; room > 0; --room) free_.push_back(room - 1);
  }

  const SealedMemory& memory() const { return *memory_; }
  size_t message_bytes() const { return message_bytes_; }
  uint64_t RequestAt(size_t room) const { return 2 * room * message_bytes_; }
  uint64_t AnswerAt(size_t room) const { return RequestAt(room) + message_bytes_; }
  char* At(uint64_t offset) const { return memory_->data() + offset; }

  bool HasFree() const {
    MutexLock lock(&mu_);
    return !free_.empty();
  }
  // The one that was freed last: its pages are in the processor's cache.
  size_t Take(uint64_t tag) {
    MutexLock lock(&mu_);
    const size_t room = free_.back();
    free_.pop_back();
    tags_[room] = tag;
    return room;
  }
  void Free(size_t room) {
    MutexLock lock(&mu_);
    tags_[room] = 0;
    free_.push_back(room);
  }
  std::optional<size_t> RoomOf(uint64_t tag) const {
    MutexLock lock(&mu_);
    for (size_t room = 0; room < tags_.size(); ++room) {
      if (tags_[room] == tag) return room;
    }
    return std::nullopt;
  }

 private:
  const std::unique_ptr<SealedMemory> memory_;
  const size_t message_bytes_;
  mutable Mutex mu_;
  std::vector<uint64_t> tags_ ABSL_GUARDED_BY(mu_);  // by room; 0: none
  std::vector<size_t> free_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<std::unique_ptr<MemoryClient>> MemoryClient::Connect(const std::string& address,
                                                                    const Claim& claim,
                                                                    size_t calls,
                                                                    size_t message_bytes) {
  const int fd = ConnectLocally(address, LocalSocketKind::kPackets);
  if (fd < 0) return absl::UnavailableError(absl::StrCat(address, ": ", strerror(errno)));
  message_bytes = (message_bytes + kAlignment - 1) / kAlignment * kAlignment;
  absl::StatusOr<std::unique_ptr<SealedMemory>> memory =
      SealedMemory::Create(2 * calls * message_bytes, SealedMemory::Touch::kLater);
  if (!memory.ok()) {
    close(fd);
    return memory.status();
  }
  std::unique_ptr<MemoryClient> client(
      new MemoryClient(fd, std::make_shared<Rooms>(*std::move(memory), calls, message_bytes)));
  RETURN_IF_ERROR(client->Greet(claim));
  return client;
}

MemoryClient::~MemoryClient() { close(fd_); }

bool MemoryClient::has_room() const { return rooms_->HasFree(); }

absl::Status MemoryClient::Greet(const Claim& claim) {
  if (PeerUser(fd_) != geteuid()) {
    return absl::PermissionDeniedError("expected a server of this user, found another's");
  }
  const MemoryGreeting greeting;
  const std::string authorization =
      claim.auth_token.empty() ? "" : absl::StrCat("Bearer ", claim.auth_token);
  const std::string shown =
      absl::StrCat(claim.role, "\n", claim.job_token, "\n", authorization, "\n", claim.protocol);
  RETURN_IF_ERROR(SendPacket(fd_, &greeting, sizeof(greeting), shown, rooms_->memory().fd()));
  pollfd waiting = {fd_, POLLIN, 0};
  if (poll(&waiting, 1, kGreetingMilliseconds) != 1) {
    return absl::UnavailableError("the server does not answer");
  }
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  ASSIGN_OR_RETURN(const std::optional<Completion> welcome, Next());
  return welcome.has_value() ? welcome->status : Ended();
}

absl::Status MemoryClient::Start(absl::string_view method, const ByteRope& request, uint64_t tag) {
  if (request.size() > rooms_->message_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("expected a request of at most ",
                                                   rooms_->message_bytes(), " bytes, found ",
                                                   request.size()));
  }
  const size_t room = rooms_->Take(tag);
  char* to = rooms_->At(rooms_->RequestAt(room));
  for (const Fragment& fragment : request.fragments()) {
    std::memcpy(to, fragment.data, fragment.size);
    to += fragment.size;
  }
  const MemoryRequest head = {tag, rooms_->RequestAt(room), request.size(), rooms_->AnswerAt(room),
                              rooms_->message_bytes()};
  return SendPacket(fd_, &head, sizeof(head), method);
}

absl::StatusOr<std::optional<MemoryClient::Completion>> MemoryClient::Next() {
  Packet packet;
  const absl::Status received = ReceivePacket(fd_, &packet);
  if (packet.fd >= 0) close(packet.fd);
  if (absl::IsUnavailable(received)) return std::nullopt;
  if (!received.ok()) return Ended();
  absl::string_view rest = packet.bytes;
  MemoryAnswer answer;
  if (!TakeHead(&rest, &answer)) return Ended();
  Completion completion = {
      answer.tag, absl::Status(static_cast<absl::StatusCode>(answer.code), rest), ByteRope()};
  if (answer.tag == 0) return completion;  // the greeting
  const std::optional<size_t> room = rooms_->RoomOf(answer.tag);
  if (!room.has_value() || answer.bytes > rooms_->message_bytes()) return Ended();
  struct Held {
    std::shared_ptr<Rooms> rooms;
    size_t room;
  };
  auto* const held = new Held{rooms_, *room};
  Pin pin(
      [](void* user) {
        std::unique_ptr<Held> owned(static_cast<Held*>(user));
        owned->rooms->Free(owned->room);
      },
      held);
  if (completion.status.ok()) {
    const auto* const data = reinterpret_cast<const uint8_t*>(rooms_->At(rooms_->AnswerAt(*room)));
    completion.response.Append({data, answer.bytes, std::move(pin)});
  }
  return completion;
}

absl::StatusOr<std::optional<MemoryClient::Completion>> MemoryClient::Await(absl::Time until) {
  while (true) {
    pollfd waiting = {fd_, POLLIN, 0};
    const timespec left =
        absl::ToTimespec(std::clamp(until - absl::Now(), absl::ZeroDuration(), absl::Hours(1)));
    if (ppoll(&waiting, 1, &left, nullptr) > 0) {
      ASSIGN_OR_RETURN(std::optional<Completion> completion, Next());
      if (completion.has_value()) return completion;
    }
    if (absl::Now() >= until) return std::nullopt;
  }
}

void MemoryClient::End() { shutdown(fd_, SHUT_RDWR); }

}  // namespace keelson
