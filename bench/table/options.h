// The command line of table_bench.
#ifndef KEELSON_BENCH_TABLE_OPTIONS_H_
#define KEELSON_BENCH_TABLE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace keelson::bench {

struct TableBenchOptions {
  uint64_t rows = 10'000'000;
  int repeat = 7;     // of what is read or updated
  int growths = 3;    // of what is inserted
  int batches = 256;  // that a repetition reads
  bool peers = true;
  bool json = false;
  bool markdown = false;
  // The goals are for the full numbers alone.
  bool quick = false;
};

// The options; or the exit code, when there is nothing to do: help was printed, or a usage error.
std::variant<TableBenchOptions, int> ParseTableBenchOptions(int argc, const char* const* argv);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_OPTIONS_H_
