// The agent's role as its main runs it: flags, the script's socket, and the worker itself.
#ifndef KEELSON_WORKER_SCRIPT_SCRIPT_ROLE_H_
#define KEELSON_WORKER_SCRIPT_SCRIPT_ROLE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/client/services/chief_service.h"
#include "core/script/script_socket.h"
#include "core/startup/role_program.h"
#include "worker/worker_role.h"

namespace CLI {
class App;
}

namespace keelson {

struct AgentFlags {
  int script_socket = -1;
  bool hold_values = false;
  std::string initial_values;  // a safetensors file; empty: none
  int64_t records = 0;         // the script's, of a model of layers
  bool propose_when_done = false;
  WorkerFlags worker;  // those of AddExchangeFlags
};

void AddAgentFlags(CLI::App* app, AgentFlags* flags);

// Works for the script until it leaves or ends, in a cluster with parameter servers: on a model of
// its own, which it proposes, or on one of layers, beside workers that compute it otherwise.
// INVALID_ARGUMENT: the socket is none, or as CheckForScript; otherwise as ScriptWorker::Run. The
// end of the script is no error.
absl::Status RunAgentRole(const RoleContext& context, const AgentFlags& flags, StopSignal* stop);

// INVALID_ARGUMENT: the configuration has what a script cannot do.
absl::Status CheckForScript(const RoleContext& context, const AgentFlags& flags);

// What RunAgentRole does once there is a chief, for a process that does more than that. `explain`:
// see ScriptWorkerOptions. `gone` is raised with the end of `script`. Errors of ScriptWorker::Run.
absl::Status ServeScript(const RoleContext& context, const AgentFlags& flags, ScriptSocket* script,
                         ChiefService* chief, ParameterClientFactory make_client,
                         std::function<absl::Status(const absl::Status&)> explain,
                         StopSignal* gone);

// Tells `chief` what the script wants to train, unless that is a model of layers, and waits until
// it is the job. FAILED_PRECONDITION: the job is another one, the first difference; others as
// CallWithRetries.
absl::Status ProposeJobOf(const RoleContext& context, const AgentFlags& flags, ChiefService* chief,
                          const StopSignal* stop);

// Of a job that is done: with --propose_when_done tells a chief that waits for a script what its
// job is, so that it ends at once. Tries it for some seconds; a chief that is not there yet waits.
void ProposeDoneJob(const RoleContext& context, const AgentFlags& flags, StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_SCRIPT_ROLE_H_
