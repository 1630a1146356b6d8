// The machine's limits: the rates of a plain socket and of memcpy with messages of the same size.
#ifndef KEELSON_BENCH_LIMIT_ROLES_H_
#define KEELSON_BENCH_LIMIT_ROLES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/peer_role.h"

namespace keelson::bench {

// Takes one connection per run and receives its messages straight into memory, one after the other
// over spec["memory_bytes"] bytes, so that the kernel's copy is the only one. Reports as pushed
// bytes. spec: "transport" ("tcp", "unix"), "message_bytes", "memory_bytes".
absl::StatusOr<std::unique_ptr<PeerRole>> MakeRawReceiver(const nlohmann::json& spec);

// Sends messages back to back, out of memory of the same size, until the receiver hangs up. spec:
// "address", "message_bytes", "memory_bytes".
absl::StatusOr<std::unique_ptr<PeerRole>> MakeRawSender(const nlohmann::json& spec);

// Copies message after message between two arrays, on one core. Reports as pushed bytes. spec:
// "message_bytes", "memory_bytes".
absl::StatusOr<std::unique_ptr<PeerRole>> MakeMemoryCopier(const nlohmann::json& spec);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_LIMIT_ROLES_H_
