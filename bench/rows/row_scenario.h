// What ps_bench measures of embedding tables: workers that move rows between processes.
#ifndef KEELSON_BENCH_ROWS_ROW_SCENARIO_H_
#define KEELSON_BENCH_ROWS_ROW_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/scenario.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// How the ids of a batch are drawn: 4096 examples with 26 ids, each of a field of its own.
enum class IdLaw {
  kZipf,     // of each field by a power law of exponent 1.05
  kUniform,  // all alike
  kHot,      // as kUniform, but one field has the same id in every example
};

inline constexpr int64_t kBatchExamples = 4096;
inline constexpr int64_t kBatchFields = 26;

// Where the rows are.
enum class RowSystem { kKeelson, kRedis };

std::string Name(IdLaw law);  // "zipf", "uniform", "hot"
IdLaw IdLawFromName(const std::string& name);
std::string Name(RowSystem system);  // "keelson", "redis"
RowSystem RowSystemFromName(const std::string& name);

struct RowScenario {
  std::string name;  // "rows-pull", "rows-push", "rows-fused", "rows-hot"
  // kPull: fetches a batch's rows. kPush: pushes their gradients, without the time of fetching them
  // before. kPushPull: pushes a batch's gradients and fetches the next one's rows in one exchange.
  Direction direction = Direction::kPull;
  IdLaw law = IdLaw::kZipf;
  int64_t dim = 16;
  int workers = 1;  // processes

  // "rows-pull zipf dim 16".
  std::string Text() const;

  friend bool operator==(const RowScenario&, const RowScenario&) = default;
};

inline constexpr int64_t kBenchDim = 16;

// The dimensions that are measured, if everything is measured at `dim`: with kBenchDim there is
// another one, for rates alone.
std::vector<int64_t> BenchDims(int64_t dim);

// All of them, those of one dimension together.
std::vector<RowScenario> RowScenarios(int64_t dim = kBenchDim);

// The parts of the benchmark that are no scenarios of this kind.
inline constexpr absl::string_view kRowsWire = "rows-wire";
inline constexpr absl::string_view kRowsSnapshot = "rows-snapshot";
inline constexpr absl::string_view kRowsExpiry = "rows-expiry";
inline constexpr absl::string_view kRowsIdle = "rows-idle";

// Whether a name is one of the comma-separated `names`, which may have "*" for any characters;
// empty: every name is.
bool IsSelected(absl::string_view name, absl::string_view names);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_SCENARIO_H_
