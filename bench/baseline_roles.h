// A parameter server with generated stubs and a `bytes` field, served and called synchronously.
#ifndef KEELSON_BENCH_BASELINE_ROLES_H_
#define KEELSON_BENCH_BASELINE_ROLES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/peer_role.h"

namespace keelson::bench {

// BaselineService over spec["memory_bytes"] bytes. spec: "transport", "message_bytes",
// "memory_bytes".
absl::StatusOr<std::unique_ptr<PeerRole>> MakeBaselineServer(const nlohmann::json& spec);

// One blocking call after the other on each of spec["threads"] threads, which share a connection.
// The payload is put into the request and taken from the response, as any user would. Command
// "run": "method" is "empty", "push", "pull" or "pushpull". spec: "address", "message_bytes",
// "memory_bytes", "threads".
absl::StatusOr<std::unique_ptr<PeerRole>> MakeBaselineClient(const nlohmann::json& spec);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_BASELINE_ROLES_H_
