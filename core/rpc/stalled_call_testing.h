// A call that begins and sends no request, for tests.
#ifndef KEELSON_CORE_RPC_STALLED_CALL_TESTING_H_
#define KEELSON_CORE_RPC_STALLED_CALL_TESTING_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>

#include "core/rpc/credentials.h"

namespace keelson {

class StalledCall {
 public:
  // Waits until the channel is connected and the call has begun.
  StalledCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel) {
    context_.set_wait_for_ready(true);
    AddClaim(Claim(), &context_);
    stream_ = stub_.PrepareCall(&context_, method, &queue_);
    stream_->StartCall(this);
    AwaitTag();
  }
  // Cancels it.
  ~StalledCall() {
    context_.TryCancel();
    if (!ended_) Await();
    queue_.Shutdown();
    AwaitTag();
  }
  StalledCall(const StalledCall&) = delete;
  StalledCall& operator=(const StalledCall&) = delete;

  // Waits until the server ends it.
  grpc::Status Await() {
    ended_ = true;
    grpc::Status status;
    stream_->Finish(&status, this);
    AwaitTag();
    return status;
  }

 private:
  void AwaitTag() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool ended_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_STALLED_CALL_TESTING_H_
