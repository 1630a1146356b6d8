// Measures the cost of a snapshot for the training that continues meanwhile.
#ifndef KEELSON_BENCH_SNAPSHOT_COST_H_
#define KEELSON_BENCH_SNAPSHOT_COST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/scenario.h"
#include "bench/statistics.h"
#include "bench/table.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

struct SnapshotOptions {
  std::vector<std::string> models = {"100MB", "1GB"};
  Handler handler = Handler::kAdam;
  // Where the data files go; each is removed when it is written.
  std::string directory;
  int repeat = 3;
  double seconds = 6;  // of a run
};

// One worker trains on one server, each in a process of its own, as fast as both can: the least
// favourable case, for the snapshot finds no idle core. Every repetition is a run without
// snapshots and a run throughout which one is written after the other.
struct SnapshotCost {
  std::string model;
  int64_t bytes = 0;  // of a data file
  Spread steps_before;
  Spread steps_during;  // per second
  Spread ratio;         // of a repetition's two runs
  Spread write;         // GB/s of snapshots
  // The rate of writing a file of the same size with nothing else running, which bounds the disk's.
  Spread plain_write;
  int64_t longest_cut_microseconds = 0;
  int snapshots = 0;
  // The server's memory: its maximum before the first snapshot, and the increase after it.
  int64_t resident = 0;
  int64_t more_resident = 0;
};

// Errors of the processes and of file.h.
absl::StatusOr<std::vector<SnapshotCost>> MeasureSnapshots(const SnapshotOptions& options);

// An array with an object per model; medians.
nlohmann::json SnapshotJson(const std::vector<SnapshotCost>& costs);
Table SnapshotTable(const std::vector<SnapshotCost>& costs);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_SNAPSHOT_COST_H_
