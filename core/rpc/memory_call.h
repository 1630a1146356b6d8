// Unary calls between two processes of one machine whose messages lie in memory that both map, in
// place of gRPC: what MemoryClient and MemoryServer have in common.
//
// The client makes a sealed memory for each connection and sends its descriptor over the server's
// MemorySocket, which keeps the bounds of packets. It writes a request into the memory and sends a
// MemoryRequest that says where it lies; the server handles it where it lies, writes the answer to
// the room that the request names, and sends a MemoryAnswer. Answers may come in another order. So
// what a call costs is two wake-ups and a copy at either end, whatever its size. The end of the
// socket is the end of the connection: a process that dies leaves nothing behind.
#ifndef KEELSON_CORE_RPC_MEMORY_CALL_H_
#define KEELSON_CORE_RPC_MEMORY_CALL_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace keelson {

// The first packet, with the memory's descriptor; behind it the caller's claim: role, job token and
// authorization (core/rpc/access.h), each ended by a line break, then the message protocol. It is
// answered by a MemoryAnswer with the tag 0.
struct MemoryGreeting {
  static constexpr uint64_t kFormat = 2;
  uint64_t format = kFormat;
};

// Behind it the method's full name. Offsets count from the memory's begin. What the client writes
// to the memory it may change while the server reads it: a server checks what it has read, not what
// it will read again.
struct MemoryRequest {
  uint64_t tag = 0;  // of the client's choice, not 0
  uint64_t at = 0;
  uint64_t bytes = 0;
  uint64_t answer_at = 0;
  uint64_t answer_room = 0;
};

// Behind it the text of an error.
struct MemoryAnswer {
  uint64_t tag = 0;
  uint64_t code = 0;  // absl::StatusCode
  uint64_t bytes = 0;
};

// The most bytes of a packet, and so of an error's text.
inline constexpr size_t kMostPacketBytes = 16 * 1024;

enum class PacketWait { kAsSocket, kNever };

// Sends a struct and the bytes behind it as one packet, with a descriptor unless `fd` is -1. Waits
// for room where the socket blocks, unless it is never to wait. UNAVAILABLE: the peer is gone, or
// it does not read.
absl::Status SendPacket(int socket, const void* head, size_t head_bytes, absl::string_view rest,
                        int fd = -1, PacketWait wait = PacketWait::kAsSocket);

// What a packet was.
struct Packet {
  std::string bytes;
  int fd = -1;  // the receiver's to close
};

// Receives a packet. Waits where the socket blocks. CANCELLED: the peer is gone. UNAVAILABLE: none
// is there. INVALID_ARGUMENT: it has more than kMostPacketBytes.
absl::Status ReceivePacket(int socket, Packet* packet);

// Takes a struct off the packet's front. False: it is shorter.
template <typename Head>
bool TakeHead(absl::string_view* packet, Head* head) {
  if (packet->size() < sizeof(*head)) return false;
  packet->copy(reinterpret_cast<char*>(head), sizeof(*head));
  packet->remove_prefix(sizeof(*head));
  return true;
}

// The user of the process at the socket's other end; -1: unknown.
uid_t PeerUser(int socket);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_MEMORY_CALL_H_
