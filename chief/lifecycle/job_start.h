// How a chief's job begins: it adopts the cluster that is running, or starts the servers over.
#ifndef KEELSON_CHIEF_LIFECYCLE_JOB_START_H_
#define KEELSON_CHIEF_LIFECYCLE_JOB_START_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator.h"
#include "chief/coordination/work_pool.h"
#include "chief/lifecycle/cold_start.h"
#include "chief/lifecycle/job_snapshots.h"
#include "chief/lifecycle/leadership.h"
#include "chief/lifecycle/start_calls.h"
#include "chief/servers/adoption.h"
#include "chief/servers/server_group.h"
#include "chief/servers/server_supervisor.h"
#include "chief/servers/snapshotter.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Not thread-safe: the thread of the job's lifecycle runs it.
class JobStart {
 public:
  struct Options {
    uint64_t config_hash = 0;
    WorkOptions work;
    // How long servers that are away are waited for, and storage that errs.
    absl::Duration startup_timeout = absl::Minutes(10);
  };

  // `cold_start` starts the job where none is adopted. `model`: as ColdStart's. When `stop` is
  // raised, the chief is to leave. All outlive this.
  JobStart(const Options& options, ModelLocation model, ColdStart* cold_start,
           Coordinator* coordinator, ServerGroup* servers, ServerSupervisor* supervisor,
           Snapshotter* snapshotter, JobSnapshots* snapshots, Leadership* leadership,
           const Clock* clock, const StopSignal* stop)
      : options_(options),
        model_(std::move(model)),
        cold_start_(cold_start),
        coordinator_(coordinator),
        servers_(servers),
        supervisor_(supervisor),
        snapshotter_(snapshotter),
        snapshots_(snapshots),
        leadership_(leadership),
        clock_(clock),
        stop_(stop),
        calls_(options.startup_timeout, servers, clock, stop) {}

  // Asks the servers what they hold, and the model directory for the newest snapshot; goes on with
  // the job that is found there (DecideAdoption), or starts the servers over. Call it once, when
  // all servers have answered and before the supervision begins, which then restores the servers
  // that are not kept. OK: the coordinator hands out work; returns when the newest snapshot was
  // written, on the monotonic clock. CANCELLED: `stop` was raised. ALREADY_EXISTS: the model
  // directory is another chief's. UNAVAILABLE: a server or the storage does not answer. Errors of
  // ColdStart::Run.
  absl::StatusOr<absl::Duration> Run();

 private:
  // What this chief numbers is to differ from what the servers have seen.
  void NoteNumbers(const std::vector<v1::ShardStatus>& shards);
  // DATA_LOSS: the persisted job state contradicts itself, and nothing has happened.
  absl::StatusOr<absl::Duration> Adopt(const Adoption& adoption,
                                       const std::vector<v1::ShardStatus>& shards);

  const Options options_;
  const ModelLocation model_;
  ColdStart* const cold_start_;
  Coordinator* const coordinator_;
  ServerGroup* const servers_;
  ServerSupervisor* const supervisor_;
  Snapshotter* const snapshotter_;
  JobSnapshots* const snapshots_;
  Leadership* const leadership_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  StartCalls calls_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_JOB_START_H_
