// chief_bench: what a chief costs with so many workers; docs/scale.md.

#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/chief/options.h"
#include "bench/chief/report.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"

namespace keelson::bench {
namespace {

struct Results {
  std::vector<ChiefResult> chiefs;
  std::vector<LifeResult> lives;
};

absl::Status MeasureOne(int workers, const ChiefBenchOptions& options, Results* results) {
  if (options.life.has_value()) {
    ASSIGN_OR_RETURN(LifeResult life, MeasureLives(workers, options.measure, *options.life));
    results->lives.push_back(std::move(life));
  } else {
    ASSIGN_OR_RETURN(ChiefResult result, MeasureChief(workers, options.measure));
    results->chiefs.push_back(std::move(result));
  }
  return absl::OkStatus();
}

void PrintErrors(int workers, const std::map<std::string, int64_t>& errors) {
  for (const auto& [code, count] : errors) {
    std::cout << workers << " workers: " << count << " calls failed: " << code << "\n";
  }
}

void Print(const Results& results, TableStyle style) {
  for (const Table& table : {CostTable(results.chiefs), JobTable(results.chiefs),
                             RoundTable(results.chiefs), LifeTable(results.lives)}) {
    std::cout << Render(table, style);
  }
  for (const ChiefResult& result : results.chiefs) PrintErrors(result.workers, result.errors);
  for (const LifeResult& life : results.lives) PrintErrors(life.workers, life.errors);
}

// What is measured takes minutes, so a path that cannot be written is found out before.
absl::Status CheckWritable(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--json: expected the path of a file, found the directory ", path));
  }
  const std::string probe = absl::StrCat(path, ".", RandomId());
  absl::Status status = WriteFileAtomically(probe, "");
  if (status.ok()) status = RemoveFile(probe);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat("--json: ", status.message()));
}

int Run(const ChiefBenchOptions& options) {
  if (!options.json_path.empty()) {
    const absl::Status writable = CheckWritable(options.json_path);
    if (!writable.ok()) {
      LogError(writable.message());
      return ExitCodeFor(writable);
    }
  }
  Results results;
  absl::Status status;
  for (const int workers : options.workers) {
    const absl::Status measured = MeasureOne(workers, options, &results);
    if (!measured.ok()) LogError(workers, " workers: ", measured.message());
    if (absl::IsCancelled(measured)) return ExitCodeFor(measured);
    status.Update(measured);
  }
  Print(results, options.markdown ? TableStyle::kMarkdown : TableStyle::kText);
  if (!options.json_path.empty()) {
    const nlohmann::json report = ChiefReport(results.chiefs, results.lives);
    const absl::Status written =
        WriteFileAtomically(options.json_path, absl::StrCat(report.dump(2), "\n"));
    if (!written.ok()) LogError(written.message());
    status.Update(written);
  }
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  signal(SIGPIPE, SIG_IGN);
  keelson::SetLogName("chief_bench");
  auto parsed = keelson::bench::ParseChiefBenchOptions(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  auto& options = std::get<keelson::bench::ChiefBenchOptions>(parsed);
  keelson::StopSignal stop;
  const keelson::SignalWatcher watcher(&stop);
  options.measure.stop = &stop;
  return keelson::bench::Run(options);
}
