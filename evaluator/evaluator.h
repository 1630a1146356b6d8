// The evaluator: scores every snapshot that appears in the model directory, until the job is over.
#ifndef KEELSON_EVALUATOR_EVALUATOR_H_
#define KEELSON_EVALUATOR_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/stop_signal.h"
#include "core/base/trouble_log.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/client/services/chief_service.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task.h"
#include "core/data/dataset.h"
#include "core/device/device.h"
#include "evaluator/chief_link.h"
#include "evaluator/ending_watch.h"
#include "evaluator/evaluation_outputs.h"
#include "evaluator/patience.h"
#include "evaluator/schedule.h"
#include "evaluator/scored_snapshots.h"
#include "evaluator/scorer.h"
#include "evaluator/snapshot_claims.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct EvaluatorOptions {
  Task self;
  std::string peer;        // "host:pid"
  v1::TrainConfig config;  // final, with a model directory
  uint64_t config_hash = 0;
  // Returns a random identity for a membership.
  std::function<MembershipId()> new_membership = RandomMembershipId;
  // Called on Run's thread with each evaluation of the job, those of earlier processes first;
  // `scored_here`: this object has made it. May be null.
  std::function<void(const EvaluationRecord&, bool scored_here)> on_evaluation;
  // The file system of the model directory, and those for leases of snapshots and for exports.
  FileSystem* file_system = FileSystem::Real();
  FileSystem* lease_files = FileSystem::Real();
  FileSystem* export_files = FileSystem::Real();
  // How often the model directory is read.
  absl::Duration poll_interval = absl::Milliseconds(200);
  absl::Duration heartbeat_interval = absl::Milliseconds(250);
  // The time that a finished job's final snapshot may take to become visible here, and that other
  // evaluators may take to finish their evaluations.
  absl::Duration final_snapshot_patience = absl::Minutes(1);
};

// Runs on the thread that calls Run, with a thread for the chief, and one for the claim of the
// snapshot that is being scored.
class Evaluator {
 public:
  // `chief` may be null: then only the model directory is watched. It, `clock` and `stop` outlive
  // the evaluator. `make_scorer` is called once, by Run, whose thread alone uses the scorer.
  Evaluator(EvaluatorOptions options, ChiefService* chief, ScorerFactory make_scorer,
            const Clock* clock, const StopSignal* stop);
  // The same for a model of layers: `device` and `eval`, the records to score on, outlive the
  // evaluator too.
  Evaluator(EvaluatorOptions options, ChiefService* chief, Device* device, const Dataset* eval,
            const Clock* clock, const StopSignal* stop);

  // Scores the snapshots that no evaluator of the job has scored yet, as the schedule says
  // (schedule.h), writes the results to MODEL_DIR/eval (evaluation_outputs.h), and acknowledges
  // them to the chief. Snapshots that vanish or are damaged are skipped, except the final one. One
  // that is being scored is claimed (snapshot_claims.h) and leased, if the model directory is
  // writable. Evaluator 0 asks the chief to end training when early stopping decides so.
  //
  // Returns OK when the job is done, as the chief says or (if there is none or it is away) the
  // DONE marker of this configuration, and the final snapshot is scored. A chief that is away is
  // waited for without end, unless the job in the directory is done and was another one.
  // CANCELLED: stopped. FAILED_PRECONDITION, ALREADY_EXISTS: JobView::error. FAILED_PRECONDITION:
  // the DONE marker is of another configuration, the chief cannot be reached, and for
  // `final_snapshot_patience` nothing has changed. DATA_LOSS: the final snapshot, or one of the
  // files in the model directory, is damaged. NOT_FOUND: the job is done, and the final snapshot or
  // a file of it has been missing for `final_snapshot_patience`. INVALID_ARGUMENT: no evaluation
  // records, or a snapshot of another model.
  absl::Status Run();

 private:
  absl::Status RunUntilStopped();
  absl::Status Prepare();
  void JoinChief();
  absl::Status Watch();
  // Does the work that is due. True: the job is done, and so is all work.
  absl::StatusOr<bool> WatchOnce();
  absl::Status TakeOthersRecords();
  // ScoredSnapshots::Look.
  absl::StatusOr<std::vector<SnapshotInfo>> LookForSnapshots();
  absl::Status ForgetAfter(int64_t step);
  absl::StatusOr<std::optional<SnapshotInfo>> NextSnapshot(
      const std::vector<SnapshotInfo>& snapshots, const Ending& ending);
  // False: another evaluator is scoring it, or it is the final one and a file of it is missing.
  absl::StatusOr<bool> ScoreSnapshot(const SnapshotInfo& snapshot, bool is_final);
  absl::Status ScoreClaimed(const SnapshotInfo& snapshot, bool is_final);
  absl::Status Publish(const SnapshotInfo& snapshot, const ScoredSnapshot& scored,
                       const WeightHistograms& histograms, bool is_final);
  void Show(const EvaluationRecord& record, bool scored_here) const;
  void Acknowledge(const EvaluationRecord& record);
  // Acknowledges the newest snapshot that was scored before this process.
  void AcknowledgeEarlier(const std::vector<SnapshotInfo>& snapshots);
  void ConsiderStopping(const Ending& ending);
  // Acknowledges the final snapshot once it is known and scored; and leaves the chief once it is
  // done.
  void TakeFinal(const Ending& ending);
  // Whether all work for a job that is done is finished. NOT_FOUND once the final snapshot has been
  // missing for too long.
  absl::StatusOr<bool> Finished(int64_t final_step);

  const EvaluatorOptions options_;
  ChiefService* const chief_;
  const ScorerFactory make_scorer_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  const CheckpointDirectory directory_;

  EvaluationSchedule schedule_;
  SnapshotClaims claims_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<EvaluationOutputs> outputs_;
  std::unique_ptr<ScoredSnapshots> scored_;
  std::unique_ptr<ChiefLink> link_;                   // null: no chief
  std::set<std::pair<int64_t, absl::Time>> skipped_;  // steps and times of commits
  // The claims at the last look.
  std::map<int64_t, ClaimInfo> claimed_by_others_;
  bool unclaimed_reported_ = false;
  EndingWatch ending_watch_;
  // The last step, and its snapshot's id.
  std::optional<std::pair<int64_t, uint64_t>> acknowledged_;
  bool stopping_ = false;
  // The error of the last try to score the final snapshot, a file of which was not found.
  absl::Status final_missing_;
  TroubleLog final_trouble_;
  Patience final_awaited_;
  Patience others_awaited_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EVALUATOR_H_
