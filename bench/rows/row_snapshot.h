// What a snapshot costs the training of a table, and how fast a server restores one.
#ifndef KEELSON_BENCH_ROWS_ROW_SNAPSHOT_H_
#define KEELSON_BENCH_ROWS_ROW_SNAPSHOT_H_

#include "absl/status/statusor.h"
#include "bench/rows/row_bench.h"
#include "bench/rows/row_cluster.h"

namespace keelson::bench {

// Each repetition is a run of fused pushes and pulls without snapshots, one throughout which one is
// written after the other, a plain file of the same size, and a server that restores the last. Then
// whole snapshots, and deltas of a hundredth of the rows on them, are written without training.
absl::StatusOr<RowSnapshotResult> MeasureRowSnapshots(const RowBenchOptions& options,
                                                      const RowClusterOptions& cluster_options,
                                                      RowCluster* cluster);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_SNAPSHOT_H_
