#include "core/rpc/raw_client.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/async_unary_call.h>

#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "core/rpc/byte_buffer.h"
#include "core/rpc/grpc_library.h"

namespace keelson {

struct RawCallQueue::Call {
  uint64_t tag = 0;
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
};

RawCallQueue::RawCallQueue(Claim claim) : claim_(std::move(claim)) { KeepGrpcRunning(); }

RawCallQueue::~RawCallQueue() {
  for (Call* call : calls_) call->context.TryCancel();
  alarm_.Cancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    if (tag != this) delete static_cast<Call*>(tag);
  }
}

void RawCallQueue::Start(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                         ByteRope request, absl::Duration timeout, uint64_t tag) {
  auto* call = new Call;
  calls_.insert(call);
  call->tag = tag;
  call->channel = channel;
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  AddClaim(claim_, &call->context);
  grpc::GenericStub stub(channel);
  call->reader =
      stub.PrepareUnaryCall(&call->context, method, MakeByteBuffer(std::move(request)), &queue_);
  call->reader->StartCall();
  call->reader->Finish(&call->response, &call->status, call);
}

void RawCallQueue::Cancel(const grpc::Channel* channel) {
  for (Call* call : calls_) {
    if (call->channel.get() == channel) call->context.TryCancel();
  }
}

std::optional<RawCallQueue::Completion> RawCallQueue::Next(absl::Duration timeout) {
  void* tag = nullptr;
  bool ok = false;
  const auto result = queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + timeout));
  if (result != grpc::CompletionQueue::GOT_EVENT) return std::nullopt;
  if (tag == this) {
    wake_pending_ = false;
    return std::nullopt;
  }
  const std::unique_ptr<Call> call(static_cast<Call*>(tag));
  calls_.erase(call.get());
  Completion completion{call->tag, call->status, {}};
  if (call->status.ok()) completion.response = TakeByteBuffer(&call->response);
  return completion;
}

void RawCallQueue::Wake() {
  if (wake_pending_.exchange(true)) return;
  alarm_.Set(&queue_, gpr_time_0(GPR_CLOCK_MONOTONIC), this);
}

}  // namespace keelson
