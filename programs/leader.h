// The process that leads a job: the chief, and what trains and hosts a shard beside it.
#ifndef KEELSON_PROGRAMS_LEADER_H_
#define KEELSON_PROGRAMS_LEADER_H_

#include "absl/status/status.h"
#include "chief/lifecycle/chief_role.h"
#include "core/base/stop_signal.h"
#include "core/device/device_group.h"
#include "core/startup/role_program.h"
#include "programs/shard_host.h"
#include "worker/worker_role.h"

namespace keelson {

struct LeaderFlags {
  ChiefFlags chief;
  WorkerFlags worker;
  ShardFlags shard;
};

// Leads the job of a cluster. `devices`: what it trains on; null: it does not train. It
// hosts its shard if it is at home here (ShardLayout), and then trains. Errors of RunChiefRole and
// RunWorkerRole.
absl::Status RunLeader(const RoleContext& context, const LeaderFlags& flags, DeviceGroup* devices,
                       StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_PROGRAMS_LEADER_H_
