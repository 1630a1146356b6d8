// The command line of chief_bench.
#ifndef KEELSON_BENCH_CHIEF_OPTIONS_H_
#define KEELSON_BENCH_CHIEF_OPTIONS_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bench/chief/lives.h"
#include "bench/chief/measurement.h"

namespace keelson::bench {

struct ChiefBenchOptions {
  std::vector<int> workers = {100, 1000, 3000};
  MeasureOptions measure;
  // Measures memory over many lives instead; nothing: does not.
  std::optional<LifeOptions> life;
  std::string json_path;  // empty: nowhere
  bool markdown = false;
};

// The options; or the exit code, when there is nothing to do: help was printed, or a usage error.
std::variant<ChiefBenchOptions, int> ParseChiefBenchOptions(int argc, const char* const* argv);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CHIEF_OPTIONS_H_
