// What table_bench measures of one table, each in a process of its own.
#ifndef KEELSON_BENCH_TABLE_MEASUREMENT_H_
#define KEELSON_BENCH_TABLE_MEASUREMENT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "bench/table/options.h"
#include "bench/table/subject.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// Ids in a batch.
inline constexpr size_t kBatchIds = 4096;

// All rates are 10^6 rows in a second of the thread's processor time, in lists with a number for
// each repetition; bytes are per row and beside the values.

// {"insert", "over_rss", "over_mean", "over_worst", "over_end", and by the table's own count, if
// it has one, "own_mean", "own_worst"}: while the table grows to all rows, from a tenth of them on.
// Then "find_half": half of the ids are absent; "find_hits": all exist; "find_zipf": all exist and
// are drawn by a power law of exponent 1.05.
nlohmann::json MeasureTable(const SubjectKind& kind, size_t dim, const TableBenchOptions& options);

// Keelson's table: {"longest_ms", the longest insertion into one partition during which the thread
// was not preempted, "longest_preempted_ms": of all}.
nlohmann::json MeasureLongestInsertion(const TableBenchOptions& options);

// Keelson's table with threads that each read other batches: {"find_half", "find_hits"}, of 1
// thread and of 2, as [[...], [...]].
nlohmann::json MeasureThreads(size_t dim, const TableBenchOptions& options);

// Keelson's table of dim 32 with the rows' optimizers, gradients float32, all rows exist: {NAME:
// as MeasureThreads}.
nlohmann::json MeasureUpdates(const TableBenchOptions& options);

// {"find": Keelson's table, all hits, "array": random reads of an array of as many rows of the same
// size, "ratio"}, in turns.
nlohmann::json MeasureBesideArray(size_t dim, const TableBenchOptions& options);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_MEASUREMENT_H_
