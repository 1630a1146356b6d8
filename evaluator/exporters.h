// Keeps evaluated snapshots as models (EvaluationConfig.exporters): the final one, the newest, and
// the best by a metric.
#ifndef KEELSON_EVALUATOR_EXPORTERS_H_
#define KEELSON_EVALUATOR_EXPORTERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/checkpoint/snapshot_info.h"
#include "core/tensor/variable.h"
#include "evaluator/metrics_log.h"
#include "evaluator/model_export.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Not thread-safe. The state is that of the directories, so it continues where an earlier process
// ended, and offering a snapshot again changes nothing. An export that fails (a full disk, a
// directory that cannot be written to) is logged and left out.
class Exporters {
 public:
  // `config` is final, with a model directory; `variables` are the model's. Half-written exports
  // are removed. `file_system`: as ExportDirectory. It and `clock` outlive the object.
  Exporters(const v1::TrainConfig& config, std::vector<VariableSpec> variables,
            FileSystem* file_system, const Clock* clock);

  // Whether some exporter takes snapshots that are not final.
  bool TakesAny() const { return latest_keep_ > 0 || best_keep_ > 0; }
  bool TakesFinal() const { return takes_final_; }

  // Offers a readable snapshot with its evaluation.
  void Offer(const SnapshotInfo& snapshot, const EvaluationRecord& record);
  void OfferFinal(const SnapshotInfo& snapshot, const EvaluationRecord& record);

  // Training has gone back to this step: the latest exports of later ones are removed. The best
  // ones stay until another snapshot of their step is offered.
  void ForgetAfter(int64_t step);

 private:
  using Exports = std::map<int64_t, ModelExport>;

  absl::Status ExportFinal(const SnapshotInfo& snapshot, const EvaluationRecord& record);
  absl::Status ExportLatest(const SnapshotInfo& snapshot, const EvaluationRecord& record);
  absl::Status ExportBest(const SnapshotInfo& snapshot, const EvaluationRecord& record);
  // The exports of the directory, from which one of another snapshot of the record's step has been
  // removed.
  absl::StatusOr<Exports> ListFor(const EvaluationRecord& record, ExportDirectory* directory);
  absl::Status Export(ExportDirectory* directory, const SnapshotInfo& snapshot,
                      const EvaluationRecord& record);
  bool AmongBest(const Exports& exports, const EvaluationRecord& record) const;
  // The step of the export with the worst value of the metric.
  int64_t WorstStep(const Exports& exports) const;
  // As IsBetter (core/scoring/direction.h) by the metric.
  bool Better(double a, double b) const;

  const v1::TrainConfig config_;
  const std::vector<VariableSpec> variables_;
  FileSystem* const file_system_;
  bool takes_final_ = false;
  size_t latest_keep_ = 0;  // 0: no such exporter
  size_t best_keep_ = 0;    // 0: no such exporter
  std::string best_metric_;
  ExportDirectory final_;
  ExportDirectory latest_;
  ExportDirectory best_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EXPORTERS_H_
