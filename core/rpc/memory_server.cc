// A client may change its memory while a call reads it, and may say anything of where messages lie.
// So offsets are checked against the mapping, whose seal keeps its size, and what handles a request
// reads each of its bytes that decide about memory once; ByteMethods get a copy.
#include "core/rpc/memory_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/sealed_memory.h"
#include "core/base/status_macros.h"
#include "core/base/thread.h"
#include "core/rpc/memory_call.h"
#include "core/rpc/memory_session.h"

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
  Connection(int fd, const MemoryMethods* methods, const AccessGuard* guard)
      : methods_(*methods),
        guard_(guard),
        session_(std::make_shared<MemorySession>(fd)),
        thread_([this] { Run(); }) {}
  ~Connection() {
    Shutdown();
    thread_.Join();
  }

  bool ended() const { return ended_; }
  // No further call is taken, and none waits any more.
  void Shutdown() {
    shutdown(session_->fd(), SHUT_RD);
    {
      MutexLock lock(&wait_->mu);
      wait_->ended = true;
      wait_->changed.NotifyAll();
    }
    session_->CancelWaits();
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
    const absl::Status told = session_->Tell(0, Answered(greeted));
    BoundReceive(session_->fd(), kAnyTime);
    bool serves = greeted.ok() && told.ok();
    while (serves) serves = ServeNext().ok();
    session_->CancelWaits();
    // The client sees the end before this object goes.
    shutdown(session_->fd(), SHUT_RDWR);
    ended_ = true;
  }

  static absl::StatusOr<uint64_t> Answered(const absl::Status& status) {
    if (!status.ok()) return status;
    return uint64_t{0};
  }

  absl::Status Greet() {
    const int fd = session_->fd();
    fcntl(fd, F_SETFL, 0);
    BoundReceive(fd, kGreetingTime);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kAnswerTime, sizeof(kAnswerTime));
    if (PeerUser(fd) != geteuid()) {
      return absl::PermissionDeniedError("expected a caller of the server's user, found another's");
    }
    Packet packet;
    RETURN_IF_ERROR(ReceivePacket(fd, &packet));
    ASSIGN_OR_RETURN(std::unique_ptr<SealedMemory> memory, SealedMemory::Open(packet.fd));
    session_->SetMemory(std::move(memory));
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
    RETURN_IF_ERROR(ReceivePacket(session_->fd(), &packet));
    if (packet.fd >= 0) close(packet.fd);
    absl::string_view method = packet.bytes;
    MemoryRequest request;
    const uint64_t within = session_->memory().bytes();
    if (!TakeHead(&method, &request) || !Lies(request.at, request.bytes, within) ||
        !Lies(request.answer_at, request.answer_room, within)) {
      return absl::InvalidArgumentError("expected a request within the memory");
    }
    const absl::StatusOr<CallerKind> kind = Admit(method, request);
    if (!kind.ok()) return session_->Tell(request.tag, kind.status());
    for (const RawMethod& raw : methods_.raw) {
      if (raw.name == method) return session_->Tell(request.tag, Handle(raw, request));
    }
    for (const ByteMethod& bytes : methods_.bytes) {
      if (bytes.name == method) return Begin(bytes, request, *kind);
    }
    return session_->Tell(request.tag,
                          absl::UnimplementedError(absl::StrCat(method, " is not served here")));
  }

  absl::StatusOr<CallerKind> Admit(absl::string_view method, const MemoryRequest& request) const {
    if (guard_ == nullptr) return CallerKind::kStranger;
    const Caller caller = {claim_[0], claim_[1], claim_[2], "unix", claim_[3]};
    ASSIGN_OR_RETURN(const CallerKind kind, guard_->Check(method, caller));
    RETURN_IF_ERROR(CheckRequestSize(method, request.bytes));
    return kind;
  }

  // Returns the bytes of the answer.
  absl::StatusOr<uint64_t> Handle(const RawMethod& method, const MemoryRequest& request) const {
    ByteRope message;
    message.AppendBorrowed(session_->memory().data() + request.at, request.bytes);
    AwaitTurn(method, message);
    ASSIGN_OR_RETURN(const ByteRope answer, method.handle(std::move(message)));
    return session_->Write(request, answer);
  }

  absl::Status Begin(const ByteMethod& method, const MemoryRequest& request, CallerKind kind) {
    if (!session_->Begin(request.tag)) {
      return absl::InvalidArgumentError("expected another tag than that of a call under way");
    }
    const std::string message(session_->memory().data() + request.at, request.bytes);
    CancelWait cancel = method.begin(
        message, kind, [session = session_, request](const absl::StatusOr<std::string>& answer) {
          session->Answer(request, answer);
        });
    if (cancel != nullptr) session_->NoteWait(request.tag, std::move(cancel));
    return absl::OkStatus();
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

  const MemoryMethods& methods_;
  const AccessGuard* const guard_;
  const std::shared_ptr<MemorySession> session_;
  std::vector<std::string> claim_;  // the thread's: role, job token, authorization, protocol
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

void MemoryServer::Start(MemoryMethods methods, const AccessGuard* guard) {
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
