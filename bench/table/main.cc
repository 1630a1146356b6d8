// table_bench: the embedding tables beside hash tables of other libraries, and beside random reads
// of an array; docs/performance.md.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/table.h"
#include "bench/table/child.h"
#include "bench/table/measurement.h"
#include "bench/table/options.h"
#include "bench/table/report.h"
#include "bench/table/row_table_subject.h"
#include "bench/table/subject.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/table/initial_rows.h"
#include "core/table/row_layout.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {
namespace {

std::vector<SubjectKind> Subjects(const TableBenchOptions& options) {
  std::vector<SubjectKind> kinds = {
      {"Keelson", [](size_t dim, const InitialRows* initial) -> std::unique_ptr<Subject> {
         return std::make_unique<RowTableSubject>(*RowLayout::Create(static_cast<int64_t>(dim), {}),
                                                  initial);
       }}};
  if (options.peers) {
    for (SubjectKind& peer : Peers()) kinds.push_back(std::move(peer));
  }
  return kinds;
}

// The growths of all tables take turns.
absl::StatusOr<std::vector<TableBenchResults::OfTable>> MeasureTables(
    size_t dim, const TableBenchOptions& options) {
  const std::vector<SubjectKind> kinds = Subjects(options);
  std::vector<TableBenchResults::OfTable> tables;
  for (const SubjectKind& kind : kinds) tables.push_back({kind.name, {}});
  for (int growth = 0; growth < options.growths; ++growth) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i].create == nullptr) continue;
      ASSIGN_OR_RETURN(nlohmann::json measured,
                       RunInChild([&] { return MeasureTable(kinds[i], dim, options); }));
      tables[i].growths.push_back(std::move(measured));
    }
  }
  return tables;
}

absl::StatusOr<TableBenchResults> Measure(const TableBenchOptions& options) {
  TableBenchResults results;
  ASSIGN_OR_RETURN(results.dim32, MeasureTables(32, options));
  ASSIGN_OR_RETURN(results.dim16, MeasureTables(16, options));
  ASSIGN_OR_RETURN(results.array16, RunInChild([&] { return MeasureBesideArray(16, options); }));
  ASSIGN_OR_RETURN(results.longest, RunInChild([&] { return MeasureLongestInsertion(options); }));
  ASSIGN_OR_RETURN(results.threads, RunInChild([&] { return MeasureThreads(32, options); }));
  ASSIGN_OR_RETURN(results.updates, RunInChild([&] { return MeasureUpdates(options); }));
  return results;
}

absl::Status Run(const TableBenchOptions& options) {
  constexpr uint64_t kRowsOfGoals = 10'000'000;
  ASSIGN_OR_RETURN(const TableBenchResults results, Measure(options));
  std::vector<TableGoal> goals;
  if (options.rows >= kRowsOfGoals) goals = TableGoals(results);
  for (const Table& table : TablesOf(results, goals)) {
    (options.json ? std::cerr : std::cout)
        << Render(table, options.markdown ? TableStyle::kMarkdown : TableStyle::kText);
  }
  if (options.json) std::cout << ToJson(results, goals).dump(2) << std::endl;
  const auto missed =
      std::count_if(goals.begin(), goals.end(), [](const TableGoal& goal) { return !goal.met(); });
  if (missed == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat(missed, " of ", goals.size(), " goals are missed"));
}

int Main(int argc, char** argv) {
  const std::variant<TableBenchOptions, int> parsed = ParseTableBenchOptions(argc, argv);
  if (const int* const code = std::get_if<int>(&parsed)) return *code;
  const absl::Status status = Run(std::get<TableBenchOptions>(parsed));
  if (status.ok()) return 0;
  LogError(status.message());
  return kExitPermanent;
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) { return keelson::bench::Main(argc, argv); }
