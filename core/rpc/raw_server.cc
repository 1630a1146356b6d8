#include "core/rpc/raw_server.h"

#include <grpcpp/alarm.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/byte_buffer.h"
#include "core/rpc/grpc_status.h"

namespace keelson {
namespace {

// The number of calls that a queue accepts before its thread requests more.
constexpr int kRequestsAhead = 12;

// How often a thread looks after calls that wait for room.
constexpr absl::Duration kTendInterval = absl::Milliseconds(100);

}  // namespace

// A call is in the queue as it arrives, then when its request is received, perhaps when it need not
// wait any longer (RawMethod::may_answer), and when its answer is sent.
struct RawServer::Call {
  enum class State { kArriving, kReceiving, kWaiting, kAnswered };

  State state = State::kArriving;
  const RawMethod* method = nullptr;
  size_t room = 0;   // what it takes of the budget
  absl::Time since;  // kReceiving
  // What tells the connections apart; kept, since gRPC makes a text of it.
  size_t peer() {
    if (peer_ == 0) peer_ = std::hash<std::string>()(context.peer()) | 1;
    return peer_;
  }

  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  grpc::ByteBuffer request;
  ByteRope message;  // the request, since it is received
  grpc::Alarm alarm;

 private:
  size_t peer_ = 0;
};

// The calls of a lane that wait to be answered. Shared with those who wake them, which may be later
// than the lane lives.
struct RawServer::Waits {
  Mutex mu;
  bool ended ABSL_GUARDED_BY(mu) = false;  // no call waits any more
  grpc::ServerCompletionQueue* queue ABSL_GUARDED_BY(mu) = nullptr;
  uint64_t next_key ABSL_GUARDED_BY(mu) = 0;
  std::map<uint64_t, Call*> calls ABSL_GUARDED_BY(mu);

  void Wake(uint64_t key) {
    MutexLock lock(&mu);
    const auto call = calls.find(key);
    if (call == calls.end()) return;
    Enqueue(call->second);
    calls.erase(call);
  }
  void End() {
    MutexLock lock(&mu);
    ended = true;
    for (const auto& [key, call] : calls) Enqueue(call);
    calls.clear();
  }

 private:
  // Puts the call into the lane's queue, whose thread goes on with it.
  void Enqueue(Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    // In the past: a time that is rounded to later milliseconds would have to be waited for.
    call->alarm.Set(queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), call);
  }
};

// A queue and its thread.
class RawServer::Lane {
 public:
  Lane(RawServer* server, size_t budget, std::unique_ptr<grpc::ServerCompletionQueue> queue)
      : server_(server), serving_(server->serving_), budget_(budget), queue_(std::move(queue)) {
    MutexLock lock(&waits_->mu);
    waits_->queue = queue_.get();
  }

  void Start() {
    for (int i = 0; i < kRequestsAhead; ++i) Request();
    thread_ = std::thread([this] { Serve(); });
  }

  // Calls that wait are refused, and none waits from now on.
  void EndWaits() { waits_->End(); }

  void Shutdown() {
    EndWaits();
    {
      MutexLock lock(&mu_);
      shut_down_ = true;
    }
    queue_->Shutdown();
    if (thread_.joinable()) thread_.join();
    // A queue must be empty when it is destroyed, even if no thread served it.
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) delete static_cast<Call*>(tag);
  }

 private:
  using NextStatus = grpc::CompletionQueue::NextStatus;

  // Begins an operation of the call. False: the queue takes no more, and the call is deleted; the
  // server may have been shut down while it was under way.
  bool Begin(Call* call, absl::FunctionRef<void()> operation) {
    {
      MutexLock lock(&mu_);
      if (!shut_down_) {
        operation();
        return true;
      }
    }
    delete call;
    return false;
  }

  void Request() {
    auto* call = new Call;
    Begin(call, [&] {
      server_->service_.RequestCall(&call->context, &call->stream, queue_.get(), queue_.get(),
                                    call);
    });
  }

  void Serve() {
    void* tag = nullptr;
    bool ok = false;
    while (true) {
      const NextStatus next = Next(&tag, &ok);
      if (!waiting_.empty()) TendWaiting();
      if (next == NextStatus::SHUTDOWN) return;
      if (next == NextStatus::GOT_EVENT) Advance(static_cast<Call*>(tag), ok);
    }
  }

  NextStatus Next(void** tag, bool* ok) {
    const bool polls = serving_.pause > absl::ZeroDuration();
    if (!polls && waiting_.empty()) {
      return queue_->Next(tag, ok) ? NextStatus::GOT_EVENT : NextStatus::SHUTDOWN;
    }
    if (!polls) return queue_->AsyncNext(tag, ok, absl::ToChronoTime(absl::Now() + kTendInterval));
    const NextStatus next = queue_->AsyncNext(tag, ok, std::chrono::system_clock::time_point());
    if (next == NextStatus::TIMEOUT) absl::SleepFor(serving_.pause);
    return next;
  }

  void Advance(Call* call, bool ok) {
    switch (call->state) {
      case Call::State::kArriving:
        if (!ok) break;  // the server is shut down
        Request();
        return Admit(call);
      case Call::State::kReceiving:
        return Received(call, ok);
      case Call::State::kWaiting:
        return Answer(call);
      case Call::State::kAnswered:
        break;
    }
    delete call;
  }

  void Admit(Call* call) {
    call->method = server_->FindMethod(call->context.method());
    if (call->method == nullptr) {
      // Without a text, as gRPC answers for a service that it does not have: clients know it by
      // that.
      return Refuse(call, absl::UnimplementedError(""));
    }
    if (serving_.guard != nullptr) {
      const absl::Status admitted =
          serving_.guard->Check(call->method->name, call->context).status();
      if (!admitted.ok()) return Refuse(call, admitted);
    }
    call->room = std::min(MaxRequestBytes(call->method->name), budget_);
    if (waiting_.empty() && HasRoomFor(call)) return Receive(call);
    if (waiting_.size() < kMostWaiting && !server_->ending_) return waiting_.push_back(call);
    Refuse(call, server_->ending_
                     ? ServerEnds()
                     : absl::ResourceExhaustedError(absl::StrCat(
                           kMostWaiting, " calls wait to be received; come again later")));
  }

  // When more than half of the budget is taken, a connection gets no more than an eighth.
  bool HasRoomFor(Call* call) const {
    if (taken_ + call->room > budget_) return false;
    if (taken_ + call->room <= budget_ / 2) return true;
    size_t of_peer = call->room;
    for (Call* other : receiving_) {
      if (other->peer() == call->peer()) of_peer += other->room;
    }
    return of_peer <= std::max(budget_ / 8, call->room);
  }

  void Receive(Call* call) {
    call->state = Call::State::kReceiving;
    call->since = absl::Now();
    if (!Begin(call, [call] { call->stream.Read(&call->request, call); })) return;
    taken_ += call->room;
    receiving_.push_back(call);
  }

  void Received(Call* call, bool ok) {
    receiving_.remove(call);
    const size_t room = call->room;  // the call may be gone when it is answered
    const absl::Status taken = ok ? Take(call) : NoMessage();
    taken.ok() ? Answer(call) : Refuse(call, taken);
    taken_ -= room;
    ReceiveWaiting();
  }

  static absl::Status NoMessage() {
    return absl::InvalidArgumentError("expected a message, found none that is whole");
  }

  absl::Status Take(Call* call) const {
    const std::string& method = call->method->name;
    const size_t bytes = call->request.Length();
    RETURN_IF_ERROR(serving_.guard == nullptr
                        ? CheckRequestSize(method, bytes)
                        : serving_.guard->CheckSize(method, bytes, call->context));
    call->message = TakeByteBuffer(&call->request);
    return absl::OkStatus();
  }

  void Answer(Call* call) {
    if (MustWait(call)) return;
    absl::StatusOr<ByteRope> response = call->method->handle(std::move(call->message));
    if (!response.ok()) return Refuse(call, response.status());
    call->state = Call::State::kAnswered;
    const grpc::ByteBuffer answer = MakeByteBuffer(*std::move(response));
    Begin(call, [&] {
      call->stream.WriteAndFinish(answer, grpc::WriteOptions(), grpc::Status::OK, call);
    });
  }

  // Whether the call waits now, until it is in the queue again, or is refused because it would have
  // to wait at a server that ends.
  bool MustWait(Call* call) {
    if (call->method->may_answer == nullptr) return false;
    call->state = Call::State::kWaiting;
    bool ended = false;
    uint64_t key = 0;
    {
      MutexLock lock(&waits_->mu);
      ended = waits_->ended;
      key = waits_->next_key++;
      if (!ended) waits_->calls.emplace(key, call);
    }
    if (!call->method->may_answer(call->message, [waits = waits_, key] { waits->Wake(key); })) {
      if (ended) Refuse(call, ServerEnds());
      return true;
    }
    MutexLock lock(&waits_->mu);
    // If the server ends just now, the call is in the queue.
    return !ended && waits_->calls.erase(key) == 0;
  }

  static absl::Status ServerEnds() { return absl::UnavailableError("the server ends"); }

  void Refuse(Call* call, const absl::Status& status) {
    call->state = Call::State::kAnswered;
    Begin(call, [&] { call->stream.Finish(ToGrpcStatus(status), call); });
  }

  void ReceiveWaiting() {
    for (auto call = waiting_.begin(); call != waiting_.end() && taken_ < budget_;) {
      if (!HasRoomFor(*call)) {
        ++call;
        continue;
      }
      Receive(*call);
      call = waiting_.erase(call);
    }
  }

  void TendWaiting() {
    if (server_->ending_) {
      for (Call* call : waiting_) Refuse(call, ServerEnds());
      waiting_.clear();
      return;
    }
    const absl::Time overdue = absl::Now() - serving_.receive_limit;
    for (Call* call : receiving_) {
      if (call->since < overdue) call->context.TryCancel();
    }
  }

  RawServer* const server_;
  const RawServing& serving_;
  const size_t budget_;
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;

  const std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();

  Mutex mu_;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;

  // The thread's own.
  size_t taken_ = 0;  // by the calls of receiving_, and the one that is handled
  std::list<Call*> receiving_;
  std::deque<Call*> waiting_;

  std::thread thread_;
};

RawServer::RawServer(RawServing serving, grpc::ServerBuilder* builder)
    : serving_(std::move(serving)) {
  builder->RegisterAsyncGenericService(&service_);
  const size_t budget = serving_.receive_budget_bytes / static_cast<size_t>(serving_.threads);
  for (int i = 0; i < serving_.threads; ++i) {
    lanes_.push_back(std::make_unique<Lane>(this, budget, builder->AddCompletionQueue()));
  }
}

RawServer::~RawServer() { Shutdown(); }

void RawServer::Start() {
  for (const auto& lane : lanes_) lane->Start();
}

void RawServer::BeginShutdown() {
  ending_ = true;
  for (const auto& lane : lanes_) lane->EndWaits();
}

void RawServer::Shutdown() {
  {
    MutexLock lock(&mu_);
    if (shut_down_) return;
    shut_down_ = true;
  }
  for (const auto& lane : lanes_) lane->Shutdown();
}

const RawMethod* RawServer::FindMethod(const std::string& name) const {
  const auto method = std::find_if(serving_.methods.begin(), serving_.methods.end(),
                                   [&](const RawMethod& m) { return m.name == name; });
  return method == serving_.methods.end() ? nullptr : &*method;
}

}  // namespace keelson
