// Results for readers and for programs.
#ifndef KEELSON_BENCH_REPORT_H_
#define KEELSON_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "bench/comparison.h"
#include "bench/result.h"
#include "bench/table.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// An array with an object for each result, of the keys that docs/performance.md explains. Numbers
// are medians; a percentile is of all repetitions together.
nlohmann::json JsonReport(const std::vector<Result>& results);

// Goodput (median and spread), calls, latency and processor time of every scenario, beside the raw
// socket and the generated stubs with the ratios to them.
Table ResultTable(const std::vector<Result>& results);
// The limits themselves, by message size.
Table LimitTable(const std::vector<Result>& results);
// Memory of servers and workers in scenarios of steps, beside what the model needs.
Table MemoryTable(const std::vector<Result>& results);
// Failures and fairness in scenarios of many clients.
Table FairnessTable(const std::vector<Result>& results);
Table IdleTable(const IdleCpu& idle);

// Goodput by servers, workers and direction: a line of column names, then one per result.
std::string ScalingCsv(const std::vector<Result>& results);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_REPORT_H_
