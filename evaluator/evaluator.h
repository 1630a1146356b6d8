// The evaluator: scores every snapshot that appears in the model directory, until the job is over.
#ifndef KEELSON_EVALUATOR_EVALUATOR_H_
#define KEELSON_EVALUATOR_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/random.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/client/chief_service.h"
#include "core/cluster/task.h"
#include "core/data/dataset.h"
#include "core/device/device.h"
#include "core/summary/event_writer.h"
#include "evaluator/chief_link.h"
#include "evaluator/metrics_log.h"
#include "evaluator/snapshot_scorer.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct EvaluatorOptions {
  Task self;
  std::string peer;        // "host:pid"
  v1::TrainConfig config;  // final, with a model directory
  uint64_t config_hash = 0;
  // Draws the identity of a membership.
  std::function<uint64_t()> new_incarnation = RandomId;
  // Is given each evaluation, those of earlier lives first, on Run's thread. May be null.
  std::function<void(const EvaluationRecord&)> on_evaluation;
  // Where leases of snapshots are written.
  FileSystem* lease_files = FileSystem::Real();
  // How often the model directory is looked at.
  absl::Duration poll_interval = absl::Milliseconds(200);
  absl::Duration heartbeat_interval = absl::Milliseconds(250);
  // How long a finished job's final snapshot may take to become visible here.
  absl::Duration final_snapshot_patience = absl::Minutes(1);
};

// Lives on the thread that calls Run, with a thread for the chief.
class Evaluator {
 public:
  // `chief` may be null: then only the model directory is watched. All outlive the evaluator;
  // `device` is used by Run's thread only. `eval`: the records to score on.
  Evaluator(EvaluatorOptions options, ChiefService* chief, Device* device, const Dataset* eval,
            const Clock* clock, const StopSignal* stop);

  // Scores the snapshots that are not in MODEL_DIR/eval/metrics.jsonl yet, the oldest first: adds
  // the metrics to that file and to an event file beside it, and acknowledges them to the chief.
  // Snapshots that vanish or are damaged are skipped, except the final one. One that is being read
  // is leased, where the model directory can be written to.
  //
  // Returns OK when the job is done, as the chief says or (if there is none or it is away) the
  // DONE marker of this configuration, and the final snapshot is scored. A chief that is away is
  // waited for without end.
  // CANCELLED: stopped. FAILED_PRECONDITION, ALREADY_EXISTS: JobView::error. DATA_LOSS,
  // NOT_FOUND: the final snapshot, or one of the files in the model directory, is damaged or
  // missing. INVALID_ARGUMENT: no evaluation records, or a snapshot of another model.
  absl::Status Run();

 private:
  // What is known of the end of the job.
  struct Ending {
    bool done = false;
    std::optional<int64_t> final_step;  // known when done
  };

  absl::Status Prepare();
  void JoinChief();
  absl::Status Watch();
  absl::StatusOr<Ending> LookForEnding();
  absl::StatusOr<std::optional<int64_t>> DoneMarkerStep();
  absl::StatusOr<std::optional<SnapshotInfo>> NextSnapshot(const Ending& ending) const;
  absl::Status ScoreSnapshot(const SnapshotInfo& snapshot, bool is_final);
  absl::StatusOr<EvaluationRecord> Score(const SnapshotInfo& snapshot);
  absl::Status Publish(const EvaluationRecord& record);
  void Show(const EvaluationRecord& record) const;
  // The newest snapshot that an earlier life has scored.
  absl::Status AcknowledgeEarlier();
  // NOT_FOUND once the final snapshot has been missing for too long.
  absl::Status AwaitFinalSnapshot(int64_t step);

  const EvaluatorOptions options_;
  ChiefService* const chief_;
  Device* const device_;
  const Dataset* const eval_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  const CheckpointDirectory directory_;

  std::unique_ptr<SnapshotScorer> scorer_;
  std::unique_ptr<MetricsLog> log_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<ChiefLink> link_;  // null: no chief
  // The chief has said that the job is done; it waits for no one any more.
  bool dismissed_ = false;
  std::set<int64_t> skipped_;  // steps
  bool foreign_marker_reported_ = false;
  std::optional<absl::Duration> final_awaited_since_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EVALUATOR_H_
