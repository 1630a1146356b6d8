// What the calls of one connection of a MemoryServer share: its socket, the client's memory, and
// the calls that have not been answered.
#ifndef KEELSON_CORE_RPC_MEMORY_SESSION_H_
#define KEELSON_CORE_RPC_MEMORY_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/base/sealed_memory.h"
#include "core/rpc/byte_method.h"
#include "core/rpc/memory_call.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// Lives as long as somebody may answer a call, which may be longer than the connection's thread.
// Thread-safe, but for SetMemory.
class MemorySession {
 public:
  // Takes the socket over.
  explicit MemorySession(int fd) : fd_(fd) {}
  ~MemorySession();
  MemorySession(const MemorySession&) = delete;
  MemorySession& operator=(const MemorySession&) = delete;

  int fd() const { return fd_; }
  // The client's, once it was set.
  const SealedMemory& memory() const { return *memory_; }
  // Before the first call.
  void SetMemory(std::unique_ptr<SealedMemory> memory) { memory_ = std::move(memory); }

  // Writes an answer to the request's room, which lies in the memory; returns its bytes.
  // RESOURCE_EXHAUSTED: the room is too small.
  absl::StatusOr<uint64_t> Write(const MemoryRequest& request, const ByteRope& answer) const;
  // Says what has become of a call, and the number of bytes of its answer. UNAVAILABLE: the client
  // is gone, or it does not read.
  absl::Status Tell(uint64_t tag, const absl::StatusOr<uint64_t>& answered,
                    PacketWait wait = PacketWait::kAsSocket) const;

  // A call that is perhaps answered later begins. False: another one of this tag is under way.
  bool Begin(uint64_t tag);
  // It waits, unless it has been answered.
  void NoteWait(uint64_t tag, CancelWait cancel);
  // Its answer. Does not wait for a client that does not read: that one loses the connection.
  void Answer(const MemoryRequest& request, const absl::StatusOr<std::string>& answer);
  // Cancels the waits of this moment, and those that are noted later at once.
  void CancelWaits();

 private:
  const int fd_;
  std::unique_ptr<SealedMemory> memory_;
  Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  // By tag, the calls without an answer, and how their waits end; null: they are being begun, or
  // have been cancelled.
  std::map<uint64_t, CancelWait> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_MEMORY_SESSION_H_
