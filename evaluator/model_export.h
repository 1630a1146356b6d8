// A model for use elsewhere: the values of a snapshot, without the state of optimizer and job, in
// its own directory, MODEL_DIR/export/<kind>/<step>:
//   model.ckpt-<step>.index, .data-00000-of-00001, checkpoint   the variables and global_step, as
//                                                              any snapshot (TensorBundle)
//   train_config.textproto                                     of the job
//   export.json   {"step":100,"time":1700000000.5,"kind":"best","metrics":{"loss":0.25},
//                  "source":"/model/model.ckpt-100","snapshot":"00f1e2d3c4b5a697"}
#ifndef KEELSON_EVALUATOR_MODEL_EXPORT_H_
#define KEELSON_EVALUATOR_MODEL_EXPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/checkpoint/snapshot_info.h"
#include "core/tensor/variable.h"
#include "evaluator/metrics_log.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The content of export.json.
struct ModelExport {
  int64_t step = 0;
  // When it was written.
  absl::Time time;
  // Values that are not finite are null in the file.
  std::map<std::string, double> metrics;
  uint64_t snapshot_id = 0;  // as in EvaluationRecord
};

// The exports of one kind. Not thread-safe. One process writes.
class ExportDirectory {
 public:
  // `path` is MODEL_DIR/export/<kind>. All arguments outlive the object. `file_system` is the real
  // one, or one that differs only by failing.
  ExportDirectory(FileSystem* file_system, std::string path, const Clock* clock);

  // The complete exports, by step; none if there is no directory. Errors of file_system.h.
  absl::StatusOr<std::map<int64_t, ModelExport>> List() const;

  // Removes what an interrupted Write or Remove has left. Errors of file_system.h.
  absl::Status RemoveHalfWritten();

  // Copies `variables` from the snapshot, a part of one at a time. The directory appears under its
  // name complete and durable, or not at all; an existing one is not changed. Errors of
  // BundleReader and file_system.h.
  absl::Status Write(const SnapshotInfo& snapshot, const std::vector<VariableSpec>& variables,
                     const v1::TrainConfig& config, const EvaluationRecord& record);

  // A missing export is OK.
  absl::Status Remove(int64_t step);

  std::string PathOf(int64_t step) const;

 private:
  std::string TemporaryPath(int64_t step) const;
  absl::Status Fill(const std::string& path, const SnapshotInfo& snapshot,
                    const std::vector<VariableSpec>& variables, const v1::TrainConfig& config,
                    const EvaluationRecord& record);

  FileSystem* const file_system_;
  const std::string path_;
  const Clock* const clock_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_MODEL_EXPORT_H_
