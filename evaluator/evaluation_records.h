// The evaluations of a job by all of its evaluators: MODEL_DIR/eval/metrics.jsonl is the file of
// evaluator 0, which copies into it the lines that the others write to theirs,
// metrics-<index>.jsonl.
#ifndef KEELSON_EVALUATOR_EVALUATION_RECORDS_H_
#define KEELSON_EVALUATOR_EVALUATION_RECORDS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "evaluator/metrics_log.h"

namespace keelson {

// A file that another process appends to. Not thread-safe.
class FollowedLog {
 public:
  FollowedLog(std::string path, FileSystem* file_system)
      : path_(std::move(path)), file_system_(file_system) {}

  // The records that have come since the last call. An incomplete line is read later. A line that
  // is no record, and a file that cannot be read, are logged once and skipped.
  std::vector<EvaluationRecord> ReadNew();

 private:
  void Complain(absl::string_view what);

  const std::string path_;
  FileSystem* const file_system_;
  uint64_t offset_ = 0;
  bool complained_ = false;
};

// Not thread-safe.
class EvaluationRecords {
 public:
  // Reads all files in `directory` (MODEL_DIR/eval), which exists. `index` is this evaluator's.
  // `file_system` outlives the object. Errors of MetricsLog::Open for its own file.
  static absl::StatusOr<std::unique_ptr<EvaluationRecords>> Open(
      const std::string& directory, int index, FileSystem* file_system = FileSystem::Real());

  // Reads the records that other evaluators have added, and returns new ones by step; evaluator 0
  // copies them. If a snapshot has several records, the one that was known first counts; if there
  // were several snapshots of a step, the record that was made last. A directory
  // that cannot be listed has nothing new until the next call. Errors of MetricsLog::Append.
  absl::StatusOr<std::map<int64_t, EvaluationRecord>> Refresh();

  // Adds a record of this evaluator, which is durable when Add returns. Errors of
  // MetricsLog::Append.
  absl::Status Add(const EvaluationRecord& record);

  // Drops the records of later steps, which training has gone back behind; other evaluators drop
  // theirs. Errors of MetricsLog::CutAfter.
  absl::Status ForgetAfter(int64_t step);

  // Null: the step was not scored. Valid until the next Refresh or Add.
  const EvaluationRecord* Find(int64_t step) const;
  // By step.
  const std::map<int64_t, EvaluationRecord>& records() const { return records_; }

 private:
  EvaluationRecords(std::string directory, int index, FileSystem* file_system,
                    std::unique_ptr<MetricsLog> log)
      : directory_(std::move(directory)),
        index_(index),
        file_system_(file_system),
        log_(std::move(log)),
        records_(log_->records()) {}

  // Whether the record of another evaluator is to be the one of its step.
  bool Counts(const EvaluationRecord& record) const;
  // Finds the files of the other evaluators.
  void FindFiles();

  const std::string directory_;
  const int index_;
  FileSystem* const file_system_;
  const std::unique_ptr<MetricsLog> log_;
  std::map<std::string, FollowedLog> others_;  // by name
  bool directory_lost_ = false;
  std::map<int64_t, EvaluationRecord> records_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EVALUATION_RECORDS_H_
