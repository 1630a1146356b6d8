// ps_bench: measures the data path between workers and parameter servers; docs/performance.md.

#include <signal.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "bench/comparison.h"
#include "bench/goals.h"
#include "bench/options.h"
#include "bench/parameter_server_role.h"
#include "bench/report.h"
#include "bench/roles.h"
#include "bench/rows/row_bench.h"
#include "bench/rows/row_report.h"
#include "bench/table.h"
#include "core/base/allocator.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"

namespace keelson::bench {
namespace {

struct Measurements {
  std::vector<Result> results;
  std::optional<IdleCpu> idle;
  // The error of the first comparison that failed; the results of the others are kept.
  absl::Status status;
};

// Servers that run already hold one shard at a time: each handler starts them over.
std::vector<std::vector<Scenario>> ComparisonsOf(const MeasureCommand& command) {
  if (command.comparison.addresses.empty()) return Comparisons(command.scenarios);
  std::vector<std::vector<Scenario>> comparisons;
  for (const Handler handler : {Handler::kDiscard, Handler::kSum, Handler::kSgd, Handler::kAdam}) {
    std::vector<Scenario> handled;
    for (const Scenario& scenario : command.scenarios) {
      if (scenario.handler == handler) handled.push_back(scenario);
    }
    for (auto& comparison : Comparisons(handled)) comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

absl::Status MeasureOne(const std::vector<Scenario>& scenarios, Comparer* comparer,
                        Measurements* measurements) {
  const Scenario& first = scenarios[0];
  LogInfo(first.name, ", servers x workers: ", first.servers, " x ",
          first.workers * first.clients_per_worker);
  ASSIGN_OR_RETURN(std::vector<Result> results, comparer->Compare(scenarios));
  for (Result& result : results) measurements->results.push_back(std::move(result));
  return absl::OkStatus();
}

absl::Status MeasureIdle(absl::Duration seconds, Comparer* comparer, Measurements* measurements) {
  LogInfo("idle");
  const std::vector<Scenario> steps = Select(FullScenarios(), "model-2.7MB");
  ASSIGN_OR_RETURN(measurements->idle,
                   comparer->MeasureIdle(steps[1], absl::ToDoubleSeconds(seconds)));
  return absl::OkStatus();
}

Measurements MeasureAll(const MeasureCommand& command) {
  Measurements measurements;
  auto comparer = std::make_unique<Comparer>(command.comparison);
  const auto note = [&](absl::string_view name, const absl::Status& status) {
    if (status.ok()) return;
    LogError(name, ": ", status.message());
    measurements.status.Update(status);
    // Its processes may be in the middle of a run.
    comparer = std::make_unique<Comparer>(command.comparison);
  };
  for (const std::vector<Scenario>& scenarios : ComparisonsOf(command)) {
    note(scenarios[0].name, MeasureOne(scenarios, comparer.get(), &measurements));
  }
  if (command.idle_seconds > 0) {
    note("idle", MeasureIdle(absl::Seconds(command.idle_seconds), comparer.get(), &measurements));
  }
  return measurements;
}

std::string Tables(const Measurements& measurements, TableStyle style) {
  const std::vector<Result>& results = measurements.results;
  std::string text = Render(GoalTable(CheckGoals(results, measurements.idle)), style);
  for (const Table& table :
       {ResultTable(results), LimitTable(results), MemoryTable(results), FairnessTable(results)}) {
    text += Render(table, style);
  }
  if (measurements.idle.has_value()) text += Render(IdleTable(*measurements.idle), style);
  return text;
}

TableStyle StyleOf(MeasureCommand::Format format) {
  return format == MeasureCommand::Format::kMarkdown ? TableStyle::kMarkdown : TableStyle::kText;
}

void Print(const Measurements& measurements, MeasureCommand::Format format) {
  using Format = MeasureCommand::Format;
  const std::string tables = Tables(measurements, StyleOf(format));
  (format == Format::kJson ? std::cerr : std::cout) << tables;
  if (format == Format::kJson) std::cout << JsonReport(measurements.results).dump(2) << std::endl;
}

absl::Status WriteScaling(const std::vector<Result>& results, const std::string& path) {
  std::vector<Result> scaling;
  for (const Result& result : results) {
    if (result.scenario.name == "scaling") scaling.push_back(result);
  }
  return WriteFileAtomically(path, ScalingCsv(scaling));
}

absl::Status Measure(const MeasureCommand& command) {
  const Measurements measurements = MeasureAll(command);
  Print(measurements, command.format);
  if (!command.csv_path.empty()) {
    RETURN_IF_ERROR(WriteScaling(measurements.results, command.csv_path));
  }
  return measurements.status;
}

absl::Status MeasureSnapshotCost(const SnapshotCommand& command) {
  ASSIGN_OR_RETURN(const std::vector<SnapshotCost> costs, MeasureSnapshots(command.options));
  if (command.format == MeasureCommand::Format::kJson) {
    std::cout << SnapshotJson(costs).dump(2) << std::endl;
  } else {
    std::cout << Render(SnapshotTable(costs), StyleOf(command.format));
  }
  return absl::OkStatus();
}

absl::Status MeasureRowsOf(const RowsCommand& command) {
  const RowResults results = MeasureRows(command.options);
  std::vector<GoalOutcome> goals;
  if (!command.options.quick) goals = CheckRowGoals(results);
  const bool json = command.format == MeasureCommand::Format::kJson;
  std::string text = Render(GoalTable(goals), StyleOf(command.format));
  for (const Table& table : RowTables(results)) text += Render(table, StyleOf(command.format));
  (json ? std::cerr : std::cout) << text;
  if (json) std::cout << RowJson(results, goals).dump(2) << std::endl;
  return results.status;
}

absl::Status Serve(const ServeCommand& command) {
  StopSignal stop;
  const SignalWatcher watcher(&stop);
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterServer> server,
                   ParameterServer::Start(command.options));
  LogInfo("listening on port ", server->port());
  stop.Wait();
  return absl::OkStatus();
}

int Run(int argc, char** argv) {
  const auto command = ParseCommandLine(argc, argv);
  if (const auto* exit = std::get_if<ExitCommand>(&command)) return exit->exit_code;
  absl::Status status;
  if (const auto* measure = std::get_if<MeasureCommand>(&command)) status = Measure(*measure);
  if (const auto* snapshot = std::get_if<SnapshotCommand>(&command)) {
    status = MeasureSnapshotCost(*snapshot);
  }
  if (const auto* rows = std::get_if<RowsCommand>(&command)) status = MeasureRowsOf(*rows);
  if (const auto* serve = std::get_if<ServeCommand>(&command)) status = Serve(*serve);
  if (!status.ok()) LogError(status.message());
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  signal(SIGPIPE, SIG_IGN);
  // Not a command for people: how the program starts its other processes.
  if (argc == 3 && absl::string_view(argv[1]) == "peer") {
    keelson::SetLogName("peer");
    return keelson::bench::RunPeer(argv[2], keelson::bench::MakeRole);
  }
  keelson::TuneAllocator();
  keelson::SetLogName("ps_bench");
  return keelson::bench::Run(argc, argv);
}
