// Measures embedding tables between processes, beside Redis and what the machine can do.
#ifndef KEELSON_BENCH_ROWS_ROW_BENCH_H_
#define KEELSON_BENCH_ROWS_ROW_BENCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rows/keelson_row_client.h"
#include "bench/rows/row_scenario.h"
#include "bench/run.h"
#include "bench/statistics.h"

namespace keelson::bench {

struct RowBenchOptions {
  // The table has about so many.
  uint64_t rows = 10'000'000;
  int64_t dim = kBenchDim;
  // Names, separated by commas, with "*" for any characters; empty: all.
  std::string scenarios;
  RunTiming timing = {0.2, 0.6};
  int repeat = 5;
  RunTiming snapshot_timing = {0.5, 4};
  int snapshot_repeat = 3;
  double idle_seconds = 5;
  // Where snapshots go, which are removed.
  std::string directory = "/tmp";
  // Beside Redis, where it is installed.
  bool redis = true;
  int io_threads = 1;  // of Keelson's server
  // Goals are for the full numbers alone.
  bool quick = false;
};

// The repetitions of a scenario in one system.
struct RowRates {
  Spread rows;  // 10^6 per second, of all workers together
  // Processor microseconds per row; 0: of a push, which has others' work beside it.
  Spread client_cpu;
  Spread server_cpu;
  double p50_ms = 0;  // of a batch
};

struct RowResult {
  RowScenario scenario;
  RowRates rates;
  // Of Redis; nothing: not installed, or not measured for this.
  std::optional<RowRates> redis;
  Spread of_redis;    // by repetition
  Spread raw_socket;  // GB/s
};

struct RowSnapshotResult {
  int64_t rows = 0;
  int64_t bytes = 0;  // of a data file
  Spread rate_before;
  Spread rate_during;  // 10^6 rows per second
  Spread ratio;        // of a repetition's two runs
  Spread write;        // GB/s
  Spread plain_write;
  int snapshots = 0;
  int64_t longest_cut_microseconds = 0;
  int64_t resident = 0;       // of the server before
  int64_t more_resident = 0;  // and beyond it, at its highest
  // 10^6 rows per second of a server that restores them: by its processor time, and by the clock.
  Spread restore_per_core;
  Spread restore;
  Spread alone;  // GB/s of a snapshot without training
  // The bytes and the time of a delta with a hundredth of the rows, as parts of those of the whole
  // snapshot that it is on.
  Spread delta_bytes;
  Spread delta_seconds;
};

struct RowExpiryResult {
  int64_t rows = 0;     // of the table, when it is full
  int64_t expired = 0;  // while batches were measured
  int64_t left = 0;     // then
  // The 99th percentile of a batch's time, where rows never expire and where they do.
  double p99_ms_without = 0;
  double p99_ms_with = 0;
  // The server's memory at its highest, when it has all rows and when the expired ones have been
  // made again.
  int64_t resident = 0;
  int64_t resident_again = 0;
};

struct RowResults {
  int64_t dim = kBenchDim;  // RowBenchOptions::dim
  std::vector<RowResult> results;
  // By format, at RowBenchOptions::dim.
  struct OfFormat {
    std::string format;
    RowWireBytes bytes;
  };
  std::vector<OfFormat> bytes;
  std::optional<RowSnapshotResult> snapshot;
  std::optional<RowExpiryResult> expiry;
  std::optional<double> idle;  // part of a core that the server uses without calls
  // The error of the first part that failed; the others are complete.
  absl::Status status;
};

RowResults MeasureRows(const RowBenchOptions& options);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_BENCH_H_
