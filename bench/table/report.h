// What table_bench prints.
#ifndef KEELSON_BENCH_TABLE_REPORT_H_
#define KEELSON_BENCH_TABLE_REPORT_H_

#include <string>
#include <vector>

#include "bench/statistics.h"
#include "bench/table.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// What was measured, as measurement.h describes it.
struct TableBenchResults {
  struct OfTable {
    std::string name;
    // Of each growth; empty: the library is absent from this build.
    std::vector<nlohmann::json> growths;
  };
  std::vector<OfTable> dim32, dim16;  // Keelson's table is the first
  nlohmann::json longest, threads, updates, array16;
};

struct TableGoal {
  std::string goal;
  double wanted = 0;
  bool at_least = true;  // else at most
  double found = 0;

  bool met() const { return at_least ? found >= wanted : found <= wanted; }
};

// Those of which something was measured.
std::vector<TableGoal> TableGoals(const TableBenchResults& results);

std::vector<Table> TablesOf(const TableBenchResults& results, const std::vector<TableGoal>& goals);
nlohmann::json ToJson(const TableBenchResults& results, const std::vector<TableGoal>& goals);

// The numbers of `name` in all growths.
Spread SpreadOfGrowths(const std::vector<nlohmann::json>& growths, const std::string& name);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_REPORT_H_
