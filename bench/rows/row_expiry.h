// What the sweep of expired rows costs the pushes of a table, and whether their memory is used
// again.
#ifndef KEELSON_BENCH_ROWS_ROW_EXPIRY_H_
#define KEELSON_BENCH_ROWS_ROW_EXPIRY_H_

#include "absl/status/statusor.h"
#include "bench/rows/row_bench.h"
#include "bench/rows/row_cluster.h"

namespace keelson::bench {

// Runs of fused pushes and pulls take turns between `cluster`, whose rows never expire, and another
// one of the same table, whose rows do, until all of its rows have expired that the batches do not
// update. They are made again then.
absl::StatusOr<RowExpiryResult> MeasureRowExpiry(const RowBenchOptions& options,
                                                 const RowClusterOptions& cluster_options,
                                                 RowCluster* cluster);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_EXPIRY_H_
