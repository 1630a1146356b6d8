// A worker process: the clients of a scenario.
#ifndef KEELSON_BENCH_WORKER_ROLE_H_
#define KEELSON_BENCH_WORKER_ROLE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/peer_role.h"

namespace keelson::bench {

// scenario.clients_per_worker clients, each on a thread of its own. Knows beside "run" the command
// "initialize": gives the servers the scenario's model and optimizer. spec: "scenario",
// "addresses". Says "message_bytes": the payload of its largest message on the wire.
absl::StatusOr<std::unique_ptr<PeerRole>> MakeWorker(const nlohmann::json& spec);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_WORKER_ROLE_H_
