#include "core/rpc/raw_server.h"

#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/byte_buffer.h"
#include "core/rpc/grpc_status.h"

namespace keelson {
namespace {

// The number of calls of a method that a queue accepts before its thread requests more.
constexpr int kRequestsAhead = 4;

std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> AddQueues(int count,
                                                                    grpc::ServerBuilder* builder) {
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  for (int i = 0; i < count; ++i) queues.push_back(builder->AddCompletionQueue());
  return queues;
}

}  // namespace

// A call is first in the queue as a received request, then as a sent answer.
struct RawServer::Call {
  explicit Call(const RawMethod* called, grpc::ServerCompletionQueue* on)
      : method(called), queue(on), writer(&context) {}

  const RawMethod* const method;
  grpc::ServerCompletionQueue* const queue;
  bool answered = false;
  grpc::ServerContext context;
  grpc::ByteBuffer request;
  RawMethod::Writer writer;
};

RawServer::RawServer(std::vector<RawMethod> methods, int threads, absl::Duration pause,
                     const AccessGuard* guard, grpc::ServerBuilder* builder)
    : methods_(std::move(methods)),
      pause_(pause),
      guard_(guard),
      queues_(AddQueues(threads, builder)) {}

RawServer::~RawServer() { Shutdown(); }

void RawServer::Start() {
  for (const auto& queue : queues_) {
    for (const RawMethod& method : methods_) {
      for (int i = 0; i < kRequestsAhead; ++i) Request(&method, queue.get());
    }
    threads_.emplace_back([this, q = queue.get()] { Serve(q); });
  }
}

void RawServer::Shutdown() {
  {
    MutexLock lock(&mu_);
    if (shut_down_) return;
    shut_down_ = true;
  }
  for (const auto& queue : queues_) queue->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  // A queue must be empty when it is destroyed, even if no thread served it.
  void* tag = nullptr;
  bool ok = false;
  for (const auto& queue : queues_) {
    while (queue->Next(&tag, &ok)) delete static_cast<Call*>(tag);
  }
}

void RawServer::Serve(grpc::ServerCompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (Next(queue, &tag, &ok)) {
    auto* call = static_cast<Call*>(tag);
    if (call->answered || !ok) {
      delete call;
      continue;
    }
    Request(call->method, queue);
    Handle(call);
  }
}

bool RawServer::Next(grpc::ServerCompletionQueue* queue, void** tag, bool* ok) const {
  if (pause_ == absl::ZeroDuration()) return queue->Next(tag, ok);
  while (true) {
    const auto next = queue->AsyncNext(tag, ok, std::chrono::system_clock::time_point());
    if (next != grpc::CompletionQueue::TIMEOUT) return next == grpc::CompletionQueue::GOT_EVENT;
    absl::SleepFor(pause_);
  }
}

void RawServer::Request(const RawMethod* method, grpc::ServerCompletionQueue* queue) {
  MutexLock lock(&mu_);
  if (shut_down_) return;
  auto* call = new Call(method, queue);
  method->request(&call->context, &call->request, &call->writer, queue, queue, call);
}

absl::StatusOr<ByteRope> RawServer::Answer(Call* call) const {
  if (guard_ != nullptr) {
    RETURN_IF_ERROR(guard_->Check(call->method->name, call->context).status());
  }
  return call->method->handle(TakeByteBuffer(&call->request));
}

void RawServer::Handle(Call* call) {
  absl::StatusOr<ByteRope> response = Answer(call);
  call->answered = true;
  if (response.ok()) {
    call->writer.Finish(MakeByteBuffer(*std::move(response)), grpc::Status::OK, call);
  } else {
    call->writer.FinishWithError(ToGrpcStatus(response.status()), call);
  }
}

}  // namespace keelson
