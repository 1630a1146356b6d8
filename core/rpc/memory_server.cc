// A client may change its memory while a call reads it, and may say anything of where messages lie.
// So offsets are checked against the mapping, whose seal keeps its size, and what handles a request
// reads each of its bytes that decide about memory once.
#include "core/rpc/memory_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/sealed_memory.h"
#include "core/base/status_macros.h"
#include "core/base/thread.h"
#include "core/rpc/memory_call.h"

namespace keelson {
namespace {

// How long a connection may take to say who it is.
constexpr timeval kGreetingTime = {5, 0};
constexpr timeval kAnyTime = {0, 0};
// Answers wait for a client that does not read, but not for ever.
constexpr timeval kAnswerTime = {5, 0};

// How long a call waits to be answered.
constexpr absl::Duration kLongestWait = absl::Milliseconds(500);

void BoundReceive(int fd, const timeval& time) {
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

bool Lies(uint64_t at, uint64_t bytes, uint64_t within) {
  return at <= within && bytes <= within - at;
}

}  // namespace

class MemoryServer::Connection {
 public:
  Connection(int fd, const std::vector<RawMethod>* methods, const AccessGuard* guard)
      : fd_(fd), methods_(*methods), guard_(guard), thread_([this] { Run(); }) {}
  ~Connection() {
    Shutdown();
    thread_.Join();
    close(fd_);
  }

  bool ended() const { return ended_; }
  // No further call is taken, and none waits any more.
  void Shutdown() {
    shutdown(fd_, SHUT_RD);
    MutexLock lock(&wait_->mu);
    wait_->ended = true;
    wait_->changed.NotifyAll();
  }

 private:
  // Shared with who wakes a call, which may be later than the connection lives.
  struct Wait {
    Mutex mu;
    CondVar changed;
    bool woken ABSL_GUARDED_BY(mu) = false;
    bool ended ABSL_GUARDED_BY(mu) = false;
  };

  void Run() {
    const absl::Status greeted = Greet();
    const absl::Status told = Tell(0, greeted, 0);
    BoundReceive(fd_, kAnyTime);
    bool serves = greeted.ok() && told.ok();
    while (serves) serves = ServeNext().ok();
    shutdown(fd_, SHUT_RDWR);  // The client sees the end before this object goes.
    ended_ = true;
  }

  absl::Status Greet() {
    fcntl(fd_, F_SETFL, 0);
    BoundReceive(fd_, kGreetingTime);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kAnswerTime, sizeof(kAnswerTime));
    if (PeerUser(fd_) != geteuid()) {
      return absl::PermissionDeniedError("expected a caller of the server's user, found another's");
    }
    Packet packet;
    RETURN_IF_ERROR(ReceivePacket(fd_, &packet));
    ASSIGN_OR_RETURN(memory_, SealedMemory::Open(packet.fd));
    absl::string_view shown = packet.bytes;
    MemoryGreeting greeting;
    if (!TakeHead(&shown, &greeting) || greeting.format != MemoryGreeting::kFormat) {
      return absl::InvalidArgumentError("expected another greeting");
    }
    claim_ = absl::StrSplit(shown, absl::MaxSplits('\n', 3));
    if (claim_.size() == 4) return absl::OkStatus();
    return absl::InvalidArgumentError("expected a claim of four parts");
  }

  // An error ends the connection.
  absl::Status ServeNext() {
    Packet packet;
    RETURN_IF_ERROR(ReceivePacket(fd_, &packet));
    if (packet.fd >= 0) close(packet.fd);
    absl::string_view rest = packet.bytes;
    MemoryRequest request;
    if (!TakeHead(&rest, &request) || request.method >= methods_.size() ||
        !Lies(request.at, request.bytes, memory_->bytes()) ||
        !Lies(request.answer_at, request.answer_room, memory_->bytes())) {
      return absl::InvalidArgumentError("expected a request within the memory");
    }
    const absl::StatusOr<uint64_t> answered = Handle(request);
    return Tell(request.tag, answered.status(), answered.value_or(0));
  }

  // Returns the bytes of the answer.
  absl::StatusOr<uint64_t> Handle(const MemoryRequest& request) const {
    const RawMethod& method = methods_[request.method];
    if (guard_ != nullptr) {
      const Caller caller = {claim_[0], claim_[1], claim_[2], "unix", claim_[3]};
      RETURN_IF_ERROR(guard_->Check(method.name, caller).status());
      RETURN_IF_ERROR(CheckRequestSize(method.name, request.bytes));
    }
    ByteRope message;
    message.AppendBorrowed(memory_->data() + request.at, request.bytes);
    AwaitTurn(method, message);
    ASSIGN_OR_RETURN(const ByteRope answer, method.handle(std::move(message)));
    if (answer.size() > request.answer_room) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "expected room for an answer of ", answer.size(), " bytes, found ", request.answer_room));
    }
    char* to = memory_->data() + request.answer_at;
    for (const Fragment& fragment : answer.fragments()) {
      std::memcpy(to, fragment.data, fragment.size);
      to += fragment.size;
    }
    return answer.size();
  }

  // Waits until the method can answer, but not so long that the client would give the connection
  // up. It makes no other call meanwhile.
  void AwaitTurn(const RawMethod& method, const ByteRope& message) const {
    if (method.may_answer == nullptr) return;
    const auto wake = [wait = wait_] {
      MutexLock lock(&wait->mu);
      wait->woken = true;
      wait->changed.NotifyAll();
    };
    while (!method.may_answer(message, wake)) {
      MutexLock lock(&wait_->mu);
      if (!wait_->woken && !wait_->ended) wait_->changed.WaitFor(&wait_->mu, kLongestWait);
      const bool woken = std::exchange(wait_->woken, false);
      if (!woken || wait_->ended) return;
    }
  }

  absl::Status Tell(uint64_t tag, const absl::Status& status, uint64_t bytes) const {
    const MemoryAnswer answer = {tag, static_cast<uint64_t>(status.code()), bytes};
    return SendPacket(fd_, &answer, sizeof(answer),
                      status.message().substr(0, kMostPacketBytes - sizeof(answer)));
  }

  const int fd_;
  const std::vector<RawMethod>& methods_;
  const AccessGuard* const guard_;
  std::unique_ptr<SealedMemory> memory_;  // the thread's
  std::vector<std::string> claim_;        // likewise: role, job token, authorization, protocol
  const std::shared_ptr<Wait> wait_ = std::make_shared<Wait>();
  std::atomic<bool> ended_{false};
  Thread thread_;
};

absl::StatusOr<std::unique_ptr<MemoryServer>> MemoryServer::Listen(const std::string& address) {
  ASSIGN_OR_RETURN(std::unique_ptr<LocalListener> listener,
                   LocalListener::Listen(address, LocalSocketKind::kPackets));
  return std::unique_ptr<MemoryServer>(new MemoryServer(std::move(listener)));
}

MemoryServer::MemoryServer(std::unique_ptr<LocalListener> listener)
    : listener_(std::move(listener)) {}

MemoryServer::~MemoryServer() { Stop(); }

void MemoryServer::Start(std::vector<RawMethod> methods, const AccessGuard* guard) {
  methods_ = std::move(methods);
  guard_ = guard;
  listener_->Start([this](int fd) { Add(fd); });
}

void MemoryServer::Stop() {
  listener_->Stop();
  std::list<std::unique_ptr<Connection>> ending;
  {
    MutexLock lock(&mu_);
    ending.swap(connections_);
  }
  for (const auto& connection : ending) connection->Shutdown();
}

void MemoryServer::Add(int fd) {
  MutexLock lock(&mu_);
  JoinEnded();
  if (connections_.size() >= kMostConnections) {
    close(fd);
    return;
  }
  connections_.push_back(std::make_unique<Connection>(fd, &methods_, guard_));
}

void MemoryServer::JoinEnded() {
  connections_.remove_if([](const auto& connection) { return connection->ended(); });
}

}  // namespace keelson
