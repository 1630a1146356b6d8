// keelson_agent: the member of the job on behalf of a script that computes gradients. It holds a
// shard of the model too where the job places variables on workers, and in a cluster without
// parameter servers, where the first one leads the job.

#include "absl/synchronization/mutex.h"
#include "core/config/shard_layout.h"
#include "core/startup/role_program.h"
#include "programs/hosting_agent.h"
#include "programs/leader.h"
#include "worker/script/script_role.h"

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::AgentFlags flags;
  keelson::LeaderFlags leader;
  keelson::RoleProgram program;
  program.role = keelson::Role::kWorker;
  program.several_per_host = true;
  program.description =
      "Keelson's agent: the worker of a model whose gradients a script computes. The Python "
      "package starts it; it joins the job, fetches tickets and values for the script, and pushes "
      "its gradients. Where the job places variables on workers it holds a part of the model too, "
      "as "
      "in a cluster without parameter servers, where the first one leads the job.";
  program.add_flags = [&](CLI::App* app) {
    keelson::AddAgentFlags(app, &flags);
    keelson::AddLeaderFlags(app, &leader);
  };
  program.already_done = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    keelson::ProposeDoneJob(context, flags, stop);
  };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    const keelson::ShardLayout layout(context.config, context.cluster);
    return context.cluster.collective() || layout.HomeAt(context.self).has_value()
               ? keelson::RunHostingAgent(context, flags, leader, stop)
               : keelson::RunAgentRole(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
