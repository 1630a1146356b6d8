#include "dashboard/runs/snapshot_table.h"

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "dashboard/runs/json.h"

namespace keelson {
namespace {

constexpr const char* kExportKinds[] = {"best", "final", "latest"};

std::optional<int64_t> StepOf(absl::string_view name) {
  int64_t step = 0;
  if (!absl::SimpleAtoi(name, &step) || step < 0) return std::nullopt;
  return step;
}

std::string ReportsDirectory(const std::string& model_dir) {
  return JoinPath(model_dir, "eval/reports");
}

}  // namespace

std::string ReportFilePath(const std::string& model_dir, int64_t step) {
  return JoinPath(ReportsDirectory(model_dir), absl::StrCat(step, ".json"));
}

bool SnapshotTable::Poll() {
  StoredSnapshots snapshots = snapshots_;
  PollSnapshots(&snapshots);
  Exports exports = FindExports();
  std::set<int64_t> reports = FindReports();
  const bool changed = snapshots != snapshots_ || exports != exports_ || reports != reports_;
  snapshots_ = std::move(snapshots);
  exports_ = std::move(exports);
  reports_ = std::move(reports);
  return changed;
}

void SnapshotTable::PollSnapshots(StoredSnapshots* snapshots) {
  const absl::StatusOr<std::vector<SnapshotInfo>> listed = directory_.List();
  trouble_ = listed.status();
  if (!listed.ok()) return;
  for (auto& entry : *snapshots) entry.second.exists = false;
  for (const SnapshotInfo& info : *listed) {
    StoredSnapshot& snapshot = (*snapshots)[info.step];
    const double time = ToSeconds(info.time);
    // A snapshot of an earlier run may have been replaced.
    const bool known =
        snapshot.prefix == info.prefix && snapshot.time == time && snapshot.bytes > 0;
    snapshot.exists = true;
    if (known) continue;
    snapshot.prefix = info.prefix;
    snapshot.time = time;
    snapshot.bytes = BytesOf(info.prefix);
  }
}

int64_t SnapshotTable::BytesOf(const std::string& prefix) const {
  const std::string directory = DirectoryOf(prefix);
  const std::string name_prefix = absl::StrCat(BaseName(prefix), ".");
  const absl::StatusOr<std::vector<std::string>> names = file_system_->List(directory);
  if (!names.ok()) return 0;
  int64_t bytes = 0;
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, name_prefix)) continue;
    const auto file = file_system_->OpenForRead(JoinPath(directory, name));
    if (file.ok()) bytes += static_cast<int64_t>((*file)->size());
  }
  return bytes;
}

Exports SnapshotTable::FindExports() const {
  Exports exports;
  for (const char* const kind : kExportKinds) {
    const auto names =
        file_system_->List(JoinPath(directory_.model_dir(), absl::StrCat("export/", kind)));
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (const std::optional<int64_t> step = StepOf(name)) exports[*step].insert(kind);
    }
  }
  return exports;
}

std::set<int64_t> SnapshotTable::FindReports() const {
  std::set<int64_t> steps;
  const auto names = file_system_->List(ReportsDirectory(directory_.model_dir()));
  if (!names.ok()) return steps;
  for (const std::string& name : *names) {
    absl::string_view stem = name;
    if (!absl::ConsumeSuffix(&stem, ".json")) continue;
    if (const std::optional<int64_t> step = StepOf(stem)) steps.insert(*step);
  }
  return steps;
}

}  // namespace keelson
