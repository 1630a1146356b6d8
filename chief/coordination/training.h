// The training of a job from its start on: the work with the mode in which it is handed out, the
// losses of its steps, and the sums of what its workers report.
#ifndef KEELSON_CHIEF_COORDINATION_TRAINING_H_
#define KEELSON_CHIEF_COORDINATION_TRAINING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "chief/coordination/coordinator_status.h"
#include "chief/coordination/divergence_watch.h"
#include "chief/coordination/logged_curves.h"
#include "chief/coordination/loss_curve.h"
#include "chief/coordination/work_dispatcher.h"
#include "chief/coordination/work_ledger.h"
#include "chief/coordination/worker_report.h"
#include "core/cluster/consistency.h"
#include "core/cluster/task.h"
#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// The mode with which a job goes on from `origin`: the one that it had, if that was written with
// this configuration and has one; otherwise the configured one.
ConsistencyMode ModeFrom(const v1::JobState& origin, uint64_t config_hash,
                         const ConsistencyMode& configured);

// A pure state machine: no threads, no I/O, no time. Not thread-safe: a coordinator owns it, whose
// lock guards it.
class Training {
 public:
  struct Options {
    uint64_t config_hash = 0;
    // As configured.
    ConsistencyMode mode = {};
    // Steps between two points of the loss curve.
    int64_t loss_interval = 100;
    // See DivergenceWatch.
    double max_loss = 0;
  };

  // The mode is that of ModeFrom. The reason to end early is that of the state that the ledger
  // comes from, if that was written with this configuration and has one. `first_attempt`: see
  // WorkDispatcher.
  Training(const Options& options, WorkLedger ledger, uint32_t first_attempt);

  WorkDispatcher& work() { return work_; }
  const WorkDispatcher& work() const { return work_; }
  const WorkLedger& ledger() const { return work_.ledger(); }

  // Counts what a member reports. Returns the number of steps that it has done since its last
  // report, as far as that is known: tickets of a round count in the ledger only when the round is
  // committed. Errors: WorkDispatcher::Complete's but ABORTED; losses and sums are not counted.
  absl::StatusOr<int64_t> Apply(Task task, uint64_t incarnation, const WorkerReport& report);

  // No step is under way, and none is to come. `workers_away`: workers are expected back, and may
  // hold steps that this ledger does not know of.
  bool Done(bool workers_away) const;
  // Whether nobody needs to wait for `step` completed steps any more: they are completed, training
  // is over, or it cannot succeed.
  bool Reached(int64_t step, bool workers_away) const;

  // The next point of the loss curve, or nothing while it is not complete. See LossCurve.
  std::optional<LossCurve::Point> TakeLossPoint();
  std::optional<LossCurve::Point> TakeLastLossPoint() { return losses_.TakeRest(); }

  // Takes what scripts have logged for steps below `end`, as LoggedCurves says.
  std::map<std::string, double> TakeLogged(int64_t end) { return logged_.TakeBelow(end); }

  // The ledger's state with the configuration's hash and the mode.
  v1::JobState ToState() const;
  void ToPersisted(v1::PersistedJobState* persisted) const;
  // Sets the fields of which this knows.
  void FillStatus(bool workers_away, CoordinatorStatus* status) const;

 private:
  const uint64_t config_hash_;
  LossCurve losses_;
  LoggedCurves logged_;
  DivergenceWatch divergence_;
  WorkDispatcher work_;
  // Sums since the start of this process, in all and of each worker.
  v1::WorkerFigures totals_;
  std::map<Task, v1::WorkerFigures> workers_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_TRAINING_H_
