// The processes that hold a table and those that read it, in each system.
#ifndef KEELSON_BENCH_ROWS_ROW_CLUSTER_H_
#define KEELSON_BENCH_ROWS_ROW_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/peer.h"
#include "bench/rows/row_scenario.h"
#include "bench/run.h"

namespace keelson::bench {

struct RowClusterOptions {
  RowSystem system = RowSystem::kKeelson;
  int64_t dim = 16;
  uint64_t rows = 0;
  int64_t expire_after_steps = 0;  // of Keelson's; 0: never
  int io_threads = 1;
  std::string model_dir;
};

// Owns its processes. Used by one thread.
class RowCluster {
 public:
  // Starts a server and a worker, which creates the rows.
  static absl::StatusOr<std::unique_ptr<RowCluster>> Start(const RowClusterOptions& options);

  // The server and as many workers, started where they are missing.
  absl::StatusOr<Contender> ContenderOf(const RowScenario& scenario);

  Peer* server() const { return server_.get(); }
  Peer* worker() const { return workers_[0].get(); }
  std::string address() const { return server_->ready().at("address").get<std::string>(); }

 private:
  explicit RowCluster(RowClusterOptions options) : options_(std::move(options)) {}
  absl::Status AddWorker();

  const RowClusterOptions options_;
  std::unique_ptr<Peer> server_;
  std::vector<std::unique_ptr<Peer>> workers_;
};

// The rows that a run has moved, 10^6 per second: workers count rows as calls.
inline double MegaRows(const RunResult& run) { return run.Calls() / 1e6; }

// A server of Keelson's without a table.
absl::StatusOr<std::unique_ptr<Peer>> StartEmptyServer(const RowClusterOptions& options);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_CLUSTER_H_
