// Unary calls whose messages are bytes; one thread drives many calls at a time.
#ifndef KEELSON_CORE_RPC_RAW_CLIENT_H_
#define KEELSON_CORE_RPC_RAW_CLIENT_H_

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "absl/time/time.h"
#include "core/rpc/credentials.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// Used by one thread at a time, except Wake. The thread in Next does the connections' input and
// output: no other thread is involved in a call.
class RawCallQueue {
 public:
  struct Completion {
    uint64_t tag = 0;
    grpc::Status status;
    ByteRope response;  // when `status` is OK
  };

  // Each call carries `claim`.
  explicit RawCallQueue(Claim claim = {});
  // Cancels the calls under way and waits for them.
  ~RawCallQueue();

  // `method` is a full name: "/keelson.v1.ParameterService/Pull". The channel is kept alive until
  // the call ends.
  void Start(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
             ByteRope request, absl::Duration timeout, uint64_t tag);

  // Cancels the channel's calls under way, which then end soon.
  void Cancel(const grpc::Channel* channel);

  // The next call that ended; nothing after `timeout` or Wake.
  std::optional<Completion> Next(absl::Duration timeout);

  // Ends a wait in Next, or the next one. Thread-safe.
  void Wake();

 private:
  struct Call;

  const Claim claim_;
  std::unordered_set<Call*> calls_;
  std::atomic<bool> wake_pending_{false};
  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_RAW_CLIENT_H_
