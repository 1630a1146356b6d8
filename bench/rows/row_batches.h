// The batches of ids that workers of the benchmark go through.
#ifndef KEELSON_BENCH_ROWS_ROW_BATCHES_H_
#define KEELSON_BENCH_ROWS_ROW_BATCHES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/rows/row_scenario.h"
#include "core/table/row_id.h"

namespace keelson::bench {

// The only table.
inline constexpr char kBenchTable[] = "items";

// The distinct ids of a batch, of one table.
using RowBatch = std::shared_ptr<const RowIds>;

inline int64_t NumIds(const RowBatch& batch) { return static_cast<int64_t>(batch->front().size()); }

// Ids in a batch that creates rows.
inline constexpr uint64_t kFillIds = 100'000;

// Rows of the numbers [begin, end), which are fewer than 2^32, or of every so-manieth of them.
RowBatch BatchOfRows(uint64_t begin, uint64_t end, uint64_t every = 1);

// `count` batches of rows below `rows`, a multiple of kBatchFields; other ones for each `seed`.
std::vector<RowBatch> DrawBatches(IdLaw law, uint64_t rows, size_t count, uint64_t seed);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_BATCHES_H_
