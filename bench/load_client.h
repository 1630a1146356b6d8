// One simulated worker, which loads the parameter servers in the way of a scenario.
#ifndef KEELSON_BENCH_LOAD_CLIENT_H_
#define KEELSON_BENCH_LOAD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/meter.h"
#include "bench/scenario.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/placement.h"
#include "core/cluster/transfer_formats.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson::bench {

// Used by one thread at a time.
class LoadClient {
 public:
  virtual ~LoadClient() = default;

  // Works until the window is over. An error ends it, and is that of the first call that failed.
  virtual absl::StatusOr<ClientReport> Run(const Window& window) = 0;
};

// The parameters of a scenario's client.
struct LoadPlan {
  Scenario scenario;
  std::vector<std::string> addresses;  // per shard
  Placement placement;
  std::vector<VariableFormats> formats;  // per variable of the placement
  // The number of this client among all that the servers ever have, below kMostClients.
  int client = 0;

  // The client's; AllClients has them all.
  MembershipId membership() const {
    const auto number = static_cast<uint64_t>(client) + 1;
    return {number, number};
  }
};

VariableFormats FormatsOf(Wire wire);

inline constexpr int kMostClients = 1024;

// Every client that may come.
keelson::v1::MemberList AllClients();

LoadPlan PlanLoad(const Scenario& scenario, std::vector<std::string> addresses);

// With connections of its own, made at its first call. INVALID_ARGUMENT: see
// ShardedParameterClient.
absl::StatusOr<std::unique_ptr<LoadClient>> MakeLoadClient(const LoadPlan& plan);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_LOAD_CLIENT_H_
