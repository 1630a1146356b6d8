// Makes parameter servers ready for a load.
#ifndef KEELSON_BENCH_SERVER_START_H_
#define KEELSON_BENCH_SERVER_START_H_

#include "absl/status/status.h"
#include "bench/load_client.h"

namespace keelson::bench {

// Gives each server its shard of the plan's placement, with the scenario's optimizer. Errors of the
// calls.
absl::Status InitializeServers(const LoadPlan& plan);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_SERVER_START_H_
