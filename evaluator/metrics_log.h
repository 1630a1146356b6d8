// The file MODEL_DIR/eval/metrics.jsonl: one line of JSON per evaluated snapshot,
// {"step":100,"wall_time":1700000000.5,"loss":0.25,"accuracy":0.97,"examples":2000,"seconds":0.8,
//  "snapshot":"00f1e2d3c4b5a697"}
#ifndef KEELSON_EVALUATOR_METRICS_LOG_H_
#define KEELSON_EVALUATOR_METRICS_LOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/file_system.h"

namespace keelson {

struct EvaluationRecord {
  int64_t step = 0;
  absl::Time wall_time;
  // "loss" and the model's other metrics: means over the examples. In the file, values that are
  // not finite are null.
  std::map<std::string, double> metrics;
  int64_t examples = 0;
  double seconds = 0;  // duration of the evaluation
  // JobState.snapshot_id of the snapshot that was scored; 0 (not in the file): it has none, or an
  // older build wrote the line.
  uint64_t snapshot_id = 0;
};

// One line, with its line break.
std::string FormatEvaluationRecord(const EvaluationRecord& record);
// Parses a line without its line break. Returns nothing if it is not such a record.
std::optional<EvaluationRecord> ParseEvaluationRecord(absl::string_view line);

// JobState.snapshot_id as 16 hexadecimal digits. Parsing returns 0 for anything else.
std::string FormatSnapshotId(uint64_t id);
uint64_t ParseSnapshotId(absl::string_view text);

// The evaluations, with those of earlier processes of the evaluator. Not thread-safe. One process
// writes, any number may read.
class MetricsLog {
 public:
  // Reads the file, and drops a torn last line. `file_system` outlives the log. DATA_LOSS: another
  // line is not such a record. UNAVAILABLE: the directory names the file, but it cannot be opened.
  // Otherwise as file.h.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(
      const std::string& path, FileSystem* file_system = FileSystem::Real());

  // Appends a record, which is durable when Append returns. Of two records of one step the later
  // counts.
  absl::Status Append(const EvaluationRecord& record);

  // Drops the records of later steps, also in the file. Errors of file.h.
  absl::Status CutAfter(int64_t step);

  bool Contains(int64_t step) const { return Find(step) != nullptr; }
  // Null: the step was not scored. Valid until the next Append.
  const EvaluationRecord* Find(int64_t step) const;
  // By step.
  const std::map<int64_t, EvaluationRecord>& records() const { return records_; }

 private:
  MetricsLog(std::string path, FileSystem* file_system, std::map<int64_t, EvaluationRecord> records,
             std::unique_ptr<AppendFile> file)
      : path_(std::move(path)),
        file_system_(file_system),
        records_(std::move(records)),
        file_(std::move(file)) {}

  const std::string path_;
  FileSystem* const file_system_;
  std::map<int64_t, EvaluationRecord> records_;  // by step
  std::unique_ptr<AppendFile> file_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_METRICS_LOG_H_
