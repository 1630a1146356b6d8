// keelson_agent: the member of the job on behalf of a script that computes gradients.

#include "absl/synchronization/mutex.h"
#include "core/startup/role_program.h"
#include "worker/script/script_role.h"

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::AgentFlags flags;
  keelson::RoleProgram program;
  program.role = keelson::Role::kWorker;
  program.description =
      "Keelson's agent: the worker of a model whose gradients a script computes. The Python "
      "package "
      "starts it; it joins the job, fetches tickets and values for the script, and pushes its "
      "gradients.";
  program.add_flags = [&](CLI::App* app) { keelson::AddAgentFlags(app, &flags); };
  program.already_done = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    keelson::ProposeDoneJob(context, flags, stop);
  };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunAgentRole(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
