// The results of rows for readers and for programs.
#ifndef KEELSON_BENCH_ROWS_ROW_REPORT_H_
#define KEELSON_BENCH_ROWS_ROW_REPORT_H_

#include <vector>

#include "bench/goals.h"
#include "bench/rows/row_bench.h"
#include "bench/table.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// Of what was measured.
std::vector<GoalOutcome> CheckRowGoals(const RowResults& results);

// Rates, bytes on the wire, snapshots.
std::vector<Table> RowTables(const RowResults& results);

// {"goals", "rates", "bytes", "snapshot", "idle"}; of repetitions median, min and max.
nlohmann::json RowJson(const RowResults& results, const std::vector<GoalOutcome>& goals);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_REPORT_H_
