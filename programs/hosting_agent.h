// The agent of a script where workers hold variables: beside its work for the script the process
// holds a shard of the model, and in a cluster without parameter servers it may lead the job.
#ifndef KEELSON_PROGRAMS_HOSTING_AGENT_H_
#define KEELSON_PROGRAMS_HOSTING_AGENT_H_

#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/startup/role_program.h"
#include "programs/leader.h"
#include "worker/script/script_role.h"

namespace keelson {

// Ends with the job, however long after the script has left it, or once `stop` is raised and the
// shard has another place. The end of the script is as if `stop` were raised. What the leader's
// script proposes is the job; another one's has to be the same. Errors of CheckForScript,
// RunLeader, RunHostingWorker.
absl::Status RunHostingAgent(const RoleContext& context, const AgentFlags& flags,
                             const LeaderFlags& leader, StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_PROGRAMS_HOSTING_AGENT_H_
