#include "bench/options.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_split.h"
#include "core/base/available_cores.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"

namespace keelson::bench {
namespace {

struct Preset {
  RunTiming timing;
  int repeat;
  double idle_seconds;
};
constexpr Preset kQuick = {{0.03, 0.1}, 3, 1};
constexpr Preset kFull = {{0.1, 0.5}, 5, 5};

struct Flags {
  bool quick = false;
  bool scaling = false;
  bool json = false;
  bool markdown = false;
  std::string scenarios;
  std::string handlers;
  std::string addresses;
  std::string transport = "tcp";
  std::string csv;
  int repeat = 0;
  double seconds = 0;
  int io_threads = 1;
  int baseline_threads = 1;
  bool baseline_tuned = false;
  ParameterServer::Options server;
  SnapshotOptions snapshot;
  std::string snapshot_handler = "adam";
  RowBenchOptions rows;
  bool without_redis = false;
};

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_flag("--quick", flags->quick, "A selection of scenarios, in under a minute");
  app->add_flag("--scaling", flags->scaling, "Only the sweep over servers and workers");
  app->add_option("--scenarios", flags->scenarios,
                  "Only these, separated by commas: message-4MB, model-1GB, key-value, "
                  "workers-100, scaling, idle, …; * for any characters; of rows: rows-pull, "
                  "rows-push, rows-fused, rows-hot, rows-wire, rows-idle, rows-snapshot");
  app->add_option("--handlers", flags->handlers,
                  "Only these, separated by commas: discard, sum, sgd, adam (default: all; of "
                  "servers that run already, sgd and adam)");
  app->add_flag("--json", flags->json,
                "One JSON array on standard output, tables on standard error");
  app->add_flag("--markdown", flags->markdown, "Tables as in docs/performance.md");
  app->add_option("--csv", flags->csv,
                  "File for the scaling results; bench/plot_scaling.py draws them");
  app->add_option("--repeat", flags->repeat, "Repetitions (default: 5, quick 3)");
  app->add_option("--seconds", flags->seconds, "Measured time of a run (default: 0.5, quick 0.1)");
  app->add_option("--transport", flags->transport, "Between own processes: tcp, unix or memory")
      ->check(CLI::IsMember({"tcp", "unix", "memory"}));
  app->add_option("--addresses", flags->addresses,
                  "host:port,…: servers that run already (ps_bench serve, or idle ps_servers "
                  "without a job token), instead of own ones");
  app->add_option("--io_threads", flags->io_threads, "Threads of an own server")
      ->check(PositiveNumber());
  app->add_flag("--baseline_tuned", flags->baseline_tuned,
                "Keelson's allocator settings for the generated stubs too");
  app->add_option("--baseline_threads", flags->baseline_threads,
                  "Blocking callers of the generated stubs at a time")
      ->check(PositiveNumber());
}

CLI::App* AddServe(CLI::App* app, Flags* flags) {
  CLI::App* serve = app->add_subcommand("serve", "Runs a server for another ps_bench to attach to");
  flags->server.handler = "sgd";
  flags->server.io_threads = std::clamp(AvailableCores() / 2, 1, 4);
  serve->add_option("--listen", flags->server.listen_address, "host:port")->required();
  serve->add_option("--handler", flags->server.handler, "discard, sum or sgd, which is adam too")
      ->check(CLI::IsMember({"discard", "sum", "sgd", "adam"}));
  serve->add_option("--io_threads", flags->server.io_threads, "Threads")->check(PositiveNumber());
  return serve;
}

CLI::App* AddSnapshot(CLI::App* app, Flags* flags) {
  CLI::App* snapshot =
      app->add_subcommand("snapshot", "Measures training while snapshots are written");
  SnapshotOptions* options = &flags->snapshot;
  snapshot->add_option("--directory", options->directory, "Where the data files go")->required();
  snapshot->add_option("--models", options->models, "Any of 100MB and 1GB")
      ->delimiter(',')
      ->check(CLI::IsMember({"100MB", "1GB"}));
  snapshot->add_option("--handler", flags->snapshot_handler, "sgd or adam")
      ->check(CLI::IsMember({"sgd", "adam"}));
  snapshot->add_option("--repeat", options->repeat, "Repetitions")->check(PositiveNumber());
  snapshot->add_option("--seconds", options->seconds, "Of a run")->check(PositiveNumber());
  return snapshot;
}

MeasureCommand::Format FormatOf(const Flags& flags) {
  if (flags.json) return MeasureCommand::Format::kJson;
  return flags.markdown ? MeasureCommand::Format::kMarkdown : MeasureCommand::Format::kText;
}

CLI::App* AddRows(CLI::App* app, Flags* flags) {
  CLI::App* rows = app->add_subcommand(
      "rows", "Measures embedding tables, beside Redis where redis-server is installed");
  RowBenchOptions* options = &flags->rows;
  rows->add_option("--directory", options->directory, "Where snapshots go (default: /tmp)");
  rows->add_option("--rows", options->rows, "Of the table (default: 10^7, quick 10^6)")
      ->check(CLI::Range(1'000, 1'000'000'000));
  rows->add_option("--dim", options->dim, "Of the rows (default: 16, and rates at 32)")
      ->check(CLI::Range(1, 1024));
  rows->add_flag("--without_redis", flags->without_redis, "Not beside Redis");
  return rows;
}

RowsCommand RowsOf(const Flags& flags, bool rows_given) {
  RowsCommand command{flags.rows, FormatOf(flags)};
  RowBenchOptions& options = command.options;
  options.quick = flags.quick;
  if (flags.quick) {
    if (!rows_given) options.rows = 1'000'000;
    options.timing = {0.1, 0.3};
    options.repeat = 3;
    options.snapshot_timing = {0.1, 1};
    options.snapshot_repeat = 1;
    options.idle_seconds = 1;
  }
  options.scenarios = flags.scenarios;
  if (flags.seconds > 0) options.timing.seconds = flags.seconds;
  if (flags.repeat > 0) options.repeat = flags.repeat;
  options.redis = !flags.without_redis;
  options.io_threads = flags.io_threads;
  return command;
}

std::vector<Scenario> ChooseScenarios(const Flags& flags, size_t attached) {
  std::vector<Scenario> scenarios = flags.scaling                            ? ScalingScenarios()
                                    : flags.quick && flags.scenarios.empty() ? QuickScenarios()
                                                                             : FullScenarios();
  scenarios = Select(std::move(scenarios), flags.scenarios);
  const std::string handlers = flags.handlers.empty() && attached > 0 ? "sgd,adam" : flags.handlers;
  const std::vector<std::string> names = absl::StrSplit(handlers, ',', absl::SkipEmpty());
  std::vector<Scenario> chosen;
  for (Scenario& scenario : scenarios) {
    const bool handled = names.empty() || std::find(names.begin(), names.end(),
                                                    Name(scenario.handler)) != names.end();
    const bool served = attached == 0 || scenario.servers == static_cast<int>(attached);
    if (handled && served) chosen.push_back(std::move(scenario));
  }
  return chosen;
}

bool WantsIdle(const Flags& flags) {
  if (flags.scaling || !flags.addresses.empty()) return false;
  if (flags.scenarios.empty()) return true;
  const std::vector<std::string> names = absl::StrSplit(flags.scenarios, ',');
  return std::find(names.begin(), names.end(), "idle") != names.end();
}

MeasureCommand MeasureOf(const Flags& flags) {
  const Preset& preset = flags.quick ? kQuick : kFull;
  MeasureCommand command;
  command.comparison.transport = TransportFromName(flags.transport);
  command.comparison.timing = preset.timing;
  if (flags.seconds > 0) command.comparison.timing.seconds = flags.seconds;
  command.comparison.repeat = flags.repeat > 0 ? flags.repeat : preset.repeat;
  command.comparison.server_io_threads = flags.io_threads;
  command.comparison.baseline_threads = flags.baseline_threads;
  command.comparison.baseline_tuned = flags.baseline_tuned;
  command.comparison.addresses = absl::StrSplit(flags.addresses, ',', absl::SkipEmpty());
  command.scenarios = ChooseScenarios(flags, command.comparison.addresses.size());
  command.format = FormatOf(flags);
  command.csv_path = flags.csv;
  command.idle_seconds = WantsIdle(flags) ? preset.idle_seconds : 0;
  return command;
}

}  // namespace

Command ParseCommandLine(int argc, const char* const* argv) {
  CLI::App app(
      "Measures Keelson's data path beside what the machine can do at most (a raw socket, memcpy, "
      "an empty RPC) and a parameter server of generated stubs, in one run.");
  Flags flags;
  AddFlags(&app, &flags);
  const CLI::App* serve = AddServe(&app, &flags);
  const CLI::App* snapshot = AddSnapshot(&app, &flags);
  const CLI::App* rows = AddRows(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return ExitCommand{app.exit(error)};  // --help
    LogError(error.what(), "; see --help");
    return ExitCommand{kExitPermanent};
  }
  if (serve->parsed()) return ServeCommand{flags.server};
  if (snapshot->parsed()) {
    flags.snapshot.handler = flags.snapshot_handler == "sgd" ? Handler::kSgd : Handler::kAdam;
    return SnapshotCommand{flags.snapshot, FormatOf(flags)};
  }
  if (rows->parsed()) return RowsOf(flags, /*rows_given=*/rows->count("--rows") > 0);
  MeasureCommand command = MeasureOf(flags);
  if (command.scenarios.empty() && command.idle_seconds == 0) {
    LogError("no such scenario; see --help");
    return ExitCommand{kExitPermanent};
  }
  return command;
}

}  // namespace keelson::bench
