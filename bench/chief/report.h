// Results of chief_bench for readers and for programs.
#ifndef KEELSON_BENCH_CHIEF_REPORT_H_
#define KEELSON_BENCH_CHIEF_REPORT_H_

#include <vector>

#include "bench/chief/lives.h"
#include "bench/chief/measurement.h"
#include "bench/table.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// {"machine": …, "results": […], "lives": […]}, of the keys that docs/scale.md explains; a list is
// there when it has elements. bench/scale.py reads it.
nlohmann::json ChiefReport(const std::vector<ChiefResult>& results,
                           const std::vector<LifeResult>& lives);

// What each call costs the chief, by number of workers.
Table CostTable(const std::vector<ChiefResult>& results);
// The load of a whole job.
Table JobTable(const std::vector<ChiefResult>& results);
// Rounds of synchronous mode.
Table RoundTable(const std::vector<ChiefResult>& results);
// Memory at the beginning, at the middle and at the end of many lives.
Table LifeTable(const std::vector<LifeResult>& lives);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CHIEF_REPORT_H_
