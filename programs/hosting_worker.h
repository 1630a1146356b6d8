// A process that trains and holds a shard of the model, and that another one leads.
#ifndef KEELSON_PROGRAMS_HOSTING_WORKER_H_
#define KEELSON_PROGRAMS_HOSTING_WORKER_H_

#include <functional>

#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/client/services/chief_service.h"
#include "core/startup/role_program.h"
#include "programs/shard_host.h"
#include "programs/trainer.h"
#include "worker/worker_role.h"

namespace keelson {

// Trains at `place` for the chief that the cluster names.
absl::Status TrainForChief(const RoleContext& context, const WorkerFlags& flags,
                           const Trainer& trainer, TrainingPlace place, StopSignal* stop);

// Is called with the chief before the process registers with it; null: nothing is to be said.
using Introduction = std::function<absl::Status(ChiefService* chief, const StopSignal* stop)>;

// Trains, and hosts a shard until the chief says that the job is over, or, once `stop` is raised,
// until the chief needs the shard here no more. Registers with the leader where the cluster does
// not list the address. A process that joins a job of fewer hosts only trains: its chief has no
// shard for it. Errors of HostAnnouncer, ShardServer::Start, ConnectToChief, `introduce` and the
// trainer.
absl::Status RunHostingWorker(const RoleContext& context, const WorkerFlags& flags,
                              const ShardFlags& shard, const Trainer& trainer,
                              const Introduction& introduce, StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_PROGRAMS_HOSTING_WORKER_H_
