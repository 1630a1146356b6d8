// The start of a job that no server holds.
#ifndef KEELSON_CHIEF_LIFECYCLE_COLD_START_H_
#define KEELSON_CHIEF_LIFECYCLE_COLD_START_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator.h"
#include "chief/coordination/work_ledger.h"
#include "chief/coordination/work_pool.h"
#include "chief/lifecycle/job_snapshots.h"
#include "chief/lifecycle/leadership.h"
#include "chief/lifecycle/start_calls.h"
#include "chief/servers/server_group.h"
#include "chief/servers/snapshotter.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Starts all servers over from the newest snapshot that can be used, or from initial values, whose
// snapshot of step 0 is written before training begins. Not thread-safe: the thread of the job's
// lifecycle runs it.
class ColdStart {
 public:
  struct Options {
    uint64_t config_hash = 0;
    WorkOptions work;
    std::string model_dir;  // for messages
    // How long servers that are away are waited for, and storage that errs.
    absl::Duration startup_timeout = absl::Minutes(10);
    // How long files of a snapshot that are missing are waited for.
    absl::Duration missing_patience = absl::Minutes(1);
  };

  // `model` lacks the addresses, which are those of `servers` when training begins. When `stop` is
  // raised, the chief is to leave. All outlive this.
  ColdStart(Options options, ModelLocation model, Coordinator* coordinator, ServerGroup* servers,
            Snapshotter* snapshotter, JobSnapshots* snapshots, Leadership* leadership,
            const Clock* clock, const StopSignal* stop)
      : options_(std::move(options)),
        model_(std::move(model)),
        coordinator_(coordinator),
        servers_(servers),
        snapshotter_(snapshotter),
        snapshots_(snapshots),
        leadership_(leadership),
        clock_(clock),
        stop_(stop),
        calls_(options_.startup_timeout, servers, clock, stop) {}

  // `shards` is what the servers have answered (ServerGroup::Survey). OK: the coordinator hands out
  // work. CANCELLED: `stop` was raised; calls about files are cancelled then. DATA_LOSS: no
  // snapshot of several is usable, or files of snapshots are there and no state file names them.
  // UNAVAILABLE: a server or the storage does not answer, or the servers or the model directory's
  // job file know of steps of which no snapshot is in sight. PERMISSION_DENIED: the directory
  // cannot be written. ALREADY_EXISTS: it is another chief's. INVALID_ARGUMENT: a snapshot does not
  // fit the model. Otherwise errors of ServerGroup::PrepareInitialValues, ServerGroup::Initialize
  // and Snapshotter::Write.
  absl::Status Run(const std::vector<v1::ShardStatus>& shards);

 private:
  // Errors of WorkLedger::FromState.
  absl::StatusOr<WorkLedger> LedgerFrom(const v1::JobState& state) const;
  // Until the directory can be written again: its job does not run, so nothing else can go on. Up
  // to `startup_timeout`, then the error of its storage.
  absl::Status WaitForInheritance();
  // Restores all servers from the newest snapshot that can be used; waits for storage that fails.
  // The prefix is empty when the job begins: nothing tells of steps that were done.
  absl::StatusOr<Snapshotter::Restored> RestoreOrBegin(const std::vector<v1::ShardStatus>& shards);
  absl::Status CheckNothingDone(const std::vector<v1::ShardStatus>& shards) const;
  // Makes the shards of servers that have been restarted since theirs were made. No step was handed
  // out yet, so they lack nothing.
  absl::Status MakeLostShards();
  // Writes the snapshot of step 0. UNAVAILABLE: the directory, which could be written when this
  // chief took it, has become read-only. PERMISSION_DENIED: it can be written, a part of the
  // snapshot not.
  absl::Status WriteFirst(const v1::JobState& state);

  const Options options_;
  const ModelLocation model_;
  Coordinator* const coordinator_;
  ServerGroup* const servers_;
  Snapshotter* const snapshotter_;
  JobSnapshots* const snapshots_;
  Leadership* const leadership_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  StartCalls calls_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_COLD_START_H_
