// Makes parameter servers ready for a load.
#ifndef KEELSON_BENCH_SERVER_START_H_
#define KEELSON_BENCH_SERVER_START_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/load_client.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson::bench {

// Gives each server its shard of the plan's placement, with the scenario's optimizer. Errors of the
// calls.
absl::Status InitializeServers(const LoadPlan& plan);

// Sends the request, which lacks what differs between servers, to those of the placement's shards.
// Errors of the calls.
absl::Status InitializeShards(keelson::v1::InitializeShardRequest request,
                              const std::vector<std::string>& addresses);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_SERVER_START_H_
