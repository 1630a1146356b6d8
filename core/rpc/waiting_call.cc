#include "core/rpc/waiting_call.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "core/base/mutex.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/protocol.h"

namespace keelson {
namespace {

using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// One call. gRPC calls it on its threads, and OnDone last, once the call has been finished and no
// other of its calls is under way.
class WaitingCall final : public Reactor {
 public:
  WaitingCall(GuardedCalls* calls, const std::string& method, const BeginCall& begin,
              grpc::CallbackServerContext* context)
      : begin_(begin), context_(context) {
    // OnCancel may come while this is under way, and finds what was done before it.
    MutexLock lock(&mu_);
    ShowProtocol(context);
    const absl::StatusOr<CallerKind> kind = calls->Admit(method, *context);
    if (!kind.ok()) {
      Finish(ToGrpcStatus(kind.status()));
      return;
    }
    kind_ = *kind;
    reading_.emplace(calls->Unhurried(kind_), [context] { context->TryCancel(); });
    StartRead(&request_);
  }

 private:
  void OnReadDone(bool ok) override {
    reading_.reset();
    if (!ok) {
      Finish(ToGrpcStatus(GuardedCalls::NoRequest()));
      return;
    }
    CancelWait cancel =
        begin_(std::move(request_), kind_, *context_,
               [this](absl::StatusOr<grpc::ByteBuffer> a) { Answer(std::move(a)); });
    if (cancel == nullptr) return;
    {
      MutexLock lock(&mu_);
      if (!cancelled_) {
        cancel_ = std::move(cancel);
        return;
      }
    }
    cancel();
  }

  void Answer(absl::StatusOr<grpc::ByteBuffer> answer) {
    if (!answer.ok()) {
      Finish(ToGrpcStatus(answer.status()));
      return;
    }
    response_ = *std::move(answer);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  void OnCancel() override {
    CancelWait cancel;
    {
      MutexLock lock(&mu_);
      cancelled_ = true;
      cancel = std::move(cancel_);
    }
    if (cancel != nullptr) cancel();
  }

  void OnDone() override { delete this; }

  const BeginCall& begin_;
  grpc::CallbackServerContext* const context_;
  CallerKind kind_ = CallerKind::kStranger;
  std::optional<PendingReads::Scope> reading_;  // while the request is not whole
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;

  Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  CancelWait cancel_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

grpc::internal::MethodHandler* WaitingHandler(GuardedCalls* calls, std::string method,
                                              BeginCall begin) {
  return new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
      [calls, method = std::move(method),
       begin = std::move(begin)](grpc::CallbackServerContext* context) -> Reactor* {
        return new WaitingCall(calls, method, begin, context);
      });
}

}  // namespace keelson
