// The snapshots and exports of a model directory.
#ifndef KEELSON_DASHBOARD_RUNS_SNAPSHOT_TABLE_H_
#define KEELSON_DASHBOARD_RUNS_SNAPSHOT_TABLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/checkpoint/checkpoint_directory.h"

namespace keelson {

struct StoredSnapshot {
  std::string prefix;
  double time = 0;    // when it was written, seconds since the epoch
  int64_t bytes = 0;  // of all its files
  bool exists = false;

  friend bool operator==(const StoredSnapshot&, const StoredSnapshot&) = default;
};

// By step; with those that were seen earlier and are deleted.
using StoredSnapshots = std::map<int64_t, StoredSnapshot>;
// The kinds of exports of a step: "best", "final", "latest".
using Exports = std::map<int64_t, std::set<std::string>>;

// Not thread-safe.
class SnapshotTable {
 public:
  // Both outlive the table.
  SnapshotTable(FileSystem* file_system, const std::string& model_dir, const Clock* clock)
      : file_system_(file_system), directory_(file_system, model_dir, clock) {}

  // Reads the directory. True: something has changed.
  bool Poll();

  const StoredSnapshots& snapshots() const { return snapshots_; }
  const Exports& exports() const { return exports_; }
  // The steps with a file in eval/reports.
  const std::set<int64_t>& reports() const { return reports_; }
  // As CheckpointDirectory::List.
  const absl::Status& trouble() const { return trouble_; }

 private:
  void PollSnapshots(StoredSnapshots* snapshots);
  int64_t BytesOf(const std::string& prefix) const;
  Exports FindExports() const;
  std::set<int64_t> FindReports() const;

  FileSystem* const file_system_;
  const CheckpointDirectory directory_;
  StoredSnapshots snapshots_;
  Exports exports_;
  std::set<int64_t> reports_;
  absl::Status trouble_;
};

// MODEL_DIR/eval/reports/<step>.json
std::string ReportFilePath(const std::string& model_dir, int64_t step);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_SNAPSHOT_TABLE_H_
