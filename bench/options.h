// The command line of ps_bench.
#ifndef KEELSON_BENCH_OPTIONS_H_
#define KEELSON_BENCH_OPTIONS_H_

#include <string>
#include <variant>
#include <vector>

#include "bench/comparison.h"
#include "bench/parameter_server_role.h"
#include "bench/rows/row_bench.h"
#include "bench/scenario.h"
#include "bench/snapshot_cost.h"

namespace keelson::bench {

// Measures and reports.
struct MeasureCommand {
  enum class Format { kText, kMarkdown, kJson };

  ComparisonOptions comparison;
  std::vector<Scenario> scenarios;
  Format format = Format::kText;
  // Where the scaling results are written; empty: nowhere.
  std::string csv_path;
  // How long idle processes are watched; 0: not.
  double idle_seconds = 0;
};

// Runs a server for others to attach to, until SIGTERM or SIGINT.
struct ServeCommand {
  ParameterServer::Options options;
};

// Measures what snapshots cost.
struct SnapshotCommand {
  SnapshotOptions options;
  MeasureCommand::Format format = MeasureCommand::Format::kText;
};

// Measures embedding tables.
struct RowsCommand {
  RowBenchOptions options;
  MeasureCommand::Format format = MeasureCommand::Format::kText;
};

// Nothing is to be done but to exit: help was printed, or a usage error.
struct ExitCommand {
  int exit_code = 0;
};

using Command =
    std::variant<MeasureCommand, ServeCommand, SnapshotCommand, RowsCommand, ExitCommand>;

Command ParseCommandLine(int argc, const char* const* argv);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_OPTIONS_H_
