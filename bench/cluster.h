// The processes of scenarios: parameter servers and workers.
#ifndef KEELSON_BENCH_CLUSTER_H_
#define KEELSON_BENCH_CLUSTER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/comparison.h"
#include "bench/peer.h"
#include "bench/result.h"

namespace keelson::bench {

// Owns its processes. Scenarios of one handler share servers, which hold one model: that of all
// scenarios of a comparison.
class Cluster {
 public:
  explicit Cluster(const ComparisonOptions& options) : options_(options) {}

  // Starts what the scenario needs, and initialises its servers.
  absl::StatusOr<Contender> Start(const Scenario& scenario);
  Memory MemoryOf(const Contender& contender, const Scenario& scenario) const;

 private:
  struct Servers {
    std::vector<std::unique_ptr<Peer>> peers;  // none when they were there already
    std::vector<std::string> addresses;
    bool initialized = false;
  };

  absl::StatusOr<Servers*> ServersOf(const Scenario& scenario);

  const ComparisonOptions& options_;
  std::map<Handler, Servers> servers_;
  std::vector<std::unique_ptr<Peer>> workers_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CLUSTER_H_
