// Runs scenarios that are compared with each other, and the limits beside them, in turn.
#ifndef KEELSON_BENCH_COMPARISON_H_
#define KEELSON_BENCH_COMPARISON_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/limits.h"
#include "bench/result.h"
#include "bench/run.h"
#include "bench/scenario.h"
#include "bench/socket.h"

namespace keelson::bench {

struct ComparisonOptions {
  Transport transport = Transport::kTcp;
  RunTiming timing;
  int repeat = 1;
  int server_io_threads = 1;
  // Blocking callers of the generated stubs.
  int baseline_threads = 1;
  bool baseline_tuned = false;
  // Servers that run already, one per shard; empty: own ones.
  std::vector<std::string> addresses;
  // Where own servers put snapshots; empty: they write none.
  std::string model_dir;
};

// Processor use of a server and a worker between steps, in parts of a core.
struct IdleCpu {
  double server = 0;
  double worker = 0;
};

// Used by one thread.
class Comparer {
 public:
  explicit Comparer(ComparisonOptions options) : options_(std::move(options)) {}

  // One result per scenario, in their order; they are of one of Comparisons(). Every repetition
  // runs the raw socket, memcpy, the empty RPC, each scenario, and the generated stubs in each of
  // the scenarios' directions once; the raw socket again after every other scenario. One repetition
  // more comes first and is not counted. Servers and workers have ended when it returns.
  absl::StatusOr<std::vector<Result>> Compare(const std::vector<Scenario>& scenarios);

  absl::StatusOr<IdleCpu> MeasureIdle(const Scenario& scenario, double seconds);

 private:
  // Those of the last comparison, when they are the same.
  absl::Status StartLimits(const Scenario& scenario);

  const ComparisonOptions options_;
  std::unique_ptr<Limits> limits_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_COMPARISON_H_
