// The processes of the benchmark of rows.
#ifndef KEELSON_BENCH_ROWS_ROW_ROLES_H_
#define KEELSON_BENCH_ROWS_ROW_ROLES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/peer_role.h"

namespace keelson::bench {

// A client of a table. spec: "system", "address", "dim", "rows", "expire_after_steps",
// "index". Knows beside "run", with
// "direction" and "law", the commands "initialize" (Keelson's server, with the table), "fill" and
// "wire" with "format" ("f32", "bf16"), which answers with the numbers of RowWireBytes. The answer
// to a run counts rows as calls.
absl::StatusOr<std::unique_ptr<PeerRole>> MakeRowWorker(const nlohmann::json& spec);

// A redis-server on a free port, which ends with this process. Says "address". NOT_FOUND: it is not
// installed.
absl::StatusOr<std::unique_ptr<PeerRole>> MakeRedisServer(const nlohmann::json& spec);

// Whether there is a program redis-server.
bool RedisIsInstalled();

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_ROLES_H_
