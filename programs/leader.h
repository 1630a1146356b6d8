// The process that leads a job: the chief, and what trains and hosts a shard beside it.
#ifndef KEELSON_PROGRAMS_LEADER_H_
#define KEELSON_PROGRAMS_LEADER_H_

#include "absl/status/status.h"
#include "chief/lifecycle/chief_role.h"
#include "core/base/stop_signal.h"
#include "core/startup/role_program.h"
#include "programs/shard_host.h"
#include "programs/trainer.h"

namespace keelson {

struct LeaderFlags {
  ChiefFlags chief;
  ShardFlags shard;
};

void AddLeaderFlags(CLI::App* app, LeaderFlags* flags);

// Leads the job of a cluster. `trainer`: what trains beside the chief; null: nothing does. The
// process hosts its shard if it is at home here (ShardLayout), and then trains. `job`: what a
// script has said that is trained, whose agent the process is; null: the configuration, or a script
// that comes, says it. Errors of RunChiefRole and of the trainer.
absl::Status RunLeader(const RoleContext& context, const LeaderFlags& flags, const Trainer& trainer,
                       const ProposedJob* job, StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_PROGRAMS_LEADER_H_
