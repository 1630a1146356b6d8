// A client's connection to a MemoryServer.
#ifndef KEELSON_CORE_RPC_MEMORY_CLIENT_H_
#define KEELSON_CORE_RPC_MEMORY_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/rpc/credentials.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// Used by one thread at a time, but for End; answers may be dropped by any.
class MemoryClient {
 public:
  struct Completion {
    uint64_t tag = 0;
    absl::Status status;  // as the server says it
    // The bytes lie in the connection's memory, which lives as long as the rope. There is room for
    // another call when it is dropped.
    ByteRope response;
  };

  // Connects to a MemorySocket, for `calls` calls at a time whose requests and answers have at most
  // `message_bytes` bytes each. Of the memory, 2 * calls * message_bytes, only what calls need is
  // ever touched. Waits for the server's greeting, a second at most. UNAVAILABLE: nobody listens
  // there, or says nothing; RESOURCE_EXHAUSTED: there is no memory; PERMISSION_DENIED: the server
  // is another user's. Other errors are the server's.
  static absl::StatusOr<std::unique_ptr<MemoryClient>> Connect(const std::string& address,
                                                               const Claim& claim, size_t calls,
                                                               size_t message_bytes);
  // The server ends calls under way, and their answers are lost.
  ~MemoryClient();
  MemoryClient(const MemoryClient&) = delete;
  MemoryClient& operator=(const MemoryClient&) = delete;

  // Can be read when an answer is there, or the connection has ended.
  int fd() const { return fd_; }
  // Whether fewer than `calls` calls are under way.
  bool has_room() const;

  // Starts a call of a method by its full name: copies the request, and returns at once. There is
  // room. INVALID_ARGUMENT: the request is too large. UNAVAILABLE: the server is gone.
  absl::Status Start(absl::string_view method, const ByteRope& request, uint64_t tag);

  // An answer that is there. UNAVAILABLE: the connection has ended, and so have the calls under
  // way.
  absl::StatusOr<std::optional<Completion>> Next();

  // The same, when one comes until then.
  absl::StatusOr<std::optional<Completion>> Await(absl::Time until);
  // Ends the connection, and with it the wait of another thread.
  void End();

 private:
  class Rooms;

  MemoryClient(int fd, std::shared_ptr<Rooms> rooms) : fd_(fd), rooms_(std::move(rooms)) {}

  absl::Status Greet(const Claim& claim);

  const int fd_;
  const std::shared_ptr<Rooms> rooms_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_MEMORY_CLIENT_H_
