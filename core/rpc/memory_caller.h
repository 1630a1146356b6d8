// Unary calls of one server through memory (memory_call.h), where it is on this machine.
#ifndef KEELSON_CORE_RPC_MEMORY_CALLER_H_
#define KEELSON_CORE_RPC_MEMORY_CALLER_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/rpc/credentials.h"
#include "core/rpc/memory_client.h"
#include "core/wire/byte_rope.h"
#include "google/protobuf/message_lite.h"

namespace keelson {

// For calls that may be repeated: one that did not succeed here for the connection's sake is to be
// made in another way, and may have been handled. Makes a connection for each call that is under
// way, and keeps it for the next one. Thread-safe.
class MemoryCaller {
 public:
  // `peer` names the server at `address`, "host:port", in errors.
  MemoryCaller(std::string peer, const std::string& address, Claim claim,
               const Clock* clock = Clock::Real());

  // Makes a call by the method's full name, as its ByteMethod answers it. Nothing: it is to be made
  // in another way, as the server is on another machine, does not serve the method so, or is gone,
  // or as a message is too large. DEADLINE_EXCEEDED: no answer within `timeout`. CANCELLED: Cancel.
  // Other errors are the server's; they begin with its name.
  std::optional<absl::Status> Call(absl::string_view method,
                                   const google::protobuf::MessageLite& request,
                                   google::protobuf::MessageLite* response, absl::Duration timeout);
  // The same for a response as bytes. They lie in a connection's memory, which no other call takes
  // until they are dropped.
  std::optional<absl::Status> Call(absl::string_view method,
                                   const google::protobuf::MessageLite& request, ByteRope* response,
                                   absl::Duration timeout);
  // Ends the calls under way.
  void Cancel();

 private:
  struct Answer {
    absl::Status status;  // as the server says it
    ByteRope bytes;
  };

  // The call on a connection; the errors are the connection's own, which is useless then.
  absl::StatusOr<Answer> CallAt(MemoryClient* client, absl::string_view method,
                                absl::string_view request, absl::Duration timeout) const;
  // A connection that no other call has. UNAVAILABLE: there is none.
  absl::StatusOr<std::unique_ptr<MemoryClient>> Take();
  // The call that had it has ended; `whole`: another one may have it when there is room. Whether it
  // was cancelled.
  bool Return(std::unique_ptr<MemoryClient> client, bool whole);

  const std::string peer_;
  const std::string address_;  // of the memory socket; empty: another machine
  const Claim claim_;
  const Clock* const clock_;
  Mutex mu_;
  absl::Duration next_try_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  std::vector<std::unique_ptr<MemoryClient>> idle_ ABSL_GUARDED_BY(mu_);
  std::set<MemoryClient*> used_ ABSL_GUARDED_BY(mu_);
  std::set<MemoryClient*> cancelled_ ABSL_GUARDED_BY(mu_);  // of those that are used
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_MEMORY_CALLER_H_
