// All roles of peer processes, by name.
#ifndef KEELSON_BENCH_ROLES_H_
#define KEELSON_BENCH_ROLES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/peer_role.h"

namespace keelson::bench {

// The role that spec["role"] names: "raw_receiver", "raw_sender", "memory_copier",
// "baseline_server", "baseline_client", "parameter_server", "worker", "row_worker", "redis_server".
// INVALID_ARGUMENT: none of them.
absl::StatusOr<std::unique_ptr<PeerRole>> MakeRole(const nlohmann::json& spec);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROLES_H_
