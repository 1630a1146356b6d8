#include "bench/table/options.h"

#include "CLI/CLI.hpp"
#include "core/base/exit_code.h"
#include "core/base/log.h"

namespace keelson::bench {

std::variant<TableBenchOptions, int> ParseTableBenchOptions(int argc, const char* const* argv) {
  TableBenchOptions options;
  bool alone = false;
  CLI::App app(
      "Measures the embedding tables beside hash tables of other libraries, and beside "
      "random reads of an array.");
  app.add_flag("--quick", options.quick, "10^6 rows and few repetitions: half a minute, no goals");
  CLI::Option* const rows =
      app.add_option("--rows", options.rows, "in a table (default: 10^7; below it no goals)")
          ->check(CLI::Range(uint64_t{10'000}, uint64_t{1} << 32));
  CLI::Option* const repeat =
      app.add_option("--repeat", options.repeat, "readings of each (default: 7, quick 3)")
          ->check(CLI::Range(1, 1000));
  app.add_flag("--alone", alone, "Only Keelson's tables");
  app.add_flag("--json", options.json,
               "One JSON object on standard output, the tables on standard error");
  app.add_flag("--markdown", options.markdown, "The tables of docs/performance.md");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    LogError(error.what(), "; see --help");
    return kExitPermanent;
  }
  if (options.quick) {
    if (rows->count() == 0) options.rows = 1'000'000;
    if (repeat->count() == 0) options.repeat = 3;
    options.growths = 1;
    options.batches = 64;
  }
  options.peers = !alone;
  return options;
}

}  // namespace keelson::bench
