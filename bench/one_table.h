// What programs share that measure something several times over and print one table of it.
#ifndef KEELSON_BENCH_ONE_TABLE_H_
#define KEELSON_BENCH_ONE_TABLE_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bench/statistics.h"
#include "bench/table.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

struct OneTableOptions {
  int repeat = 5;
  bool json = false;
  bool markdown = false;
};

// Adds --repeat, --json and --markdown to those of `app`; the options outlive it.
void AddOneTableFlags(CLI::App* app, OneTableOptions* options);

// Prints the table and the text below it. With --json both go to standard error, and `json` to
// standard output.
void Print(const OneTableOptions& options, const Table& table, const nlohmann::json& json,
           absl::string_view below = "");

// Reads the command line, then calls `run`. The exit code: 0, also of --help; otherwise
// kExitPermanent, with a line about the flag or about the error of `run`.
int RunProgram(CLI::App* app, int argc, char** argv, absl::FunctionRef<absl::Status()> run);

nlohmann::json SpreadAsJson(const Spread& spread);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ONE_TABLE_H_
