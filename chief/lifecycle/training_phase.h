// Training as the chief's lifecycle sees it: from its start to its last step, with the snapshots
// that are due meanwhile.
#ifndef KEELSON_CHIEF_LIFECYCLE_TRAINING_PHASE_H_
#define KEELSON_CHIEF_LIFECYCLE_TRAINING_PHASE_H_

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator.h"
#include "chief/lifecycle/job_snapshots.h"
#include "chief/lifecycle/leadership.h"
#include "chief/lifecycle/save_schedule.h"
#include "chief/lifecycle/stream_watch.h"
#include "chief/servers/server_group.h"
#include "chief/servers/server_state.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"

namespace keelson {

// Waits while the members train; nothing of the training itself happens here. Not thread-safe: the
// thread of the job's lifecycle runs it.
class TrainingPhase {
 public:
  struct Options {
    SaveSchedule::Options saves;
    // A snapshot before the chief or a server leaves waits this long for the steps under way.
    absl::Duration step_wait = absl::Seconds(5);
  };

  // When `stop` is raised, the chief is to leave. All outlive this.
  TrainingPhase(Options options, Coordinator* coordinator, ServerGroup* servers,
                JobSnapshots* snapshots, Leadership* leadership, const StreamWatch* stream,
                const Clock* clock, const StopSignal* stop)
      : options_(std::move(options)),
        coordinator_(coordinator),
        servers_(servers),
        snapshots_(snapshots),
        leadership_(leadership),
        stream_(stream),
        clock_(clock),
        stop_(stop) {}

  // Waits until training is over, and writes the snapshots that are due, those that are wanted
  // (SnapshotWishes), and one for servers that were asked to stop and whose shards have no other
  // place; other shards are moved, away from such hosts and home again. Those that fail are tried
  // again, but for wanted ones. Call it when the coordinator trains. The newest snapshot was
  // written at `saved_at`, on the monotonic clock. INVALID_ARGUMENT: the loss is not finite, or
  // training has diverged. Errors of StreamWatch::status(). CANCELLED: `stop` was raised; a
  // snapshot has been tried, unless another chief has this one's place.
  absl::Status Run(absl::Duration saved_at);

 private:
  // Returns what ends training before its steps are done: an error, or `stop`.
  absl::Status Check(const CoordinatorStatus& job);
  absl::Status Train(absl::Duration saved_at);
  // Writes a snapshot, unless the newest one has all steps that are done.
  absl::Status Save(const CoordinatorStatus& job);
  // Answers those who want one.
  void TellOfSnapshot(const absl::Status& saved);
  // The shards whose hosts were asked to stop and that may be elsewhere, and those that may go
  // home.
  std::set<size_t> DueMoves() const;
  // Whether one of them takes no pushes any more, as the last cut has been taken at its host: the
  // steps under way end only once it has moved.
  bool AnyClosed(const std::set<size_t>& shards) const;
  // Waits until no step is under way, or as long as that makes sense before these shards move.
  // Returns whether none is.
  bool PauseWorkFor(const std::set<size_t>& due);
  // Moves them, while nothing is handed out. Returns those that were due.
  std::set<size_t> MoveShards();
  // Those that were asked to stop, and wait for a snapshot: their shards have no other place, or
  // were `due` to move, and have not.
  std::vector<ServerView> LeavingServers(const std::set<size_t>& due) const;
  absl::Status SaveLeavingServers(const std::vector<ServerView>& leaving);
  // Logs when training begins to diverge, and when it recovers.
  void NoteDiverging(const CoordinatorStatus& job);

  const Options options_;
  Coordinator* const coordinator_;
  ServerGroup* const servers_;
  JobSnapshots* const snapshots_;
  Leadership* const leadership_;
  const StreamWatch* const stream_;
  const Clock* const clock_;
  const StopSignal* const stop_;

  // Whether the log says that training diverges.
  bool diverging_ = false;
  // The incarnations of servers that leave after a snapshot of what they hold.
  std::set<uint64_t> saved_servers_;
  // When shards may go home again, after one that could not.
  absl::Duration homecoming_due_ = -absl::InfiniteDuration();
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_TRAINING_PHASE_H_
