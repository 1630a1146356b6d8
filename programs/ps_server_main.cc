// ps_server: holds one shard of the model, applies gradients to it, serves its values.

#include <memory>
#include <optional>

#include "absl/synchronization/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/startup/done_watcher.h"
#include "core/startup/role_program.h"
#include "programs/shard_host.h"

namespace keelson {
namespace {

absl::Status RunPsServer(const RoleContext& context, const ShardFlags& flags, StopSignal* asked) {
  ShardHost host(context, flags);
  const StopCallback ends(host.end(), [asked] { asked->Raise(); });
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardServer> server, ShardServer::Start(context, &host));
  context.telemetry->ready = true;
  // Of a job that is not known the chief tells when it is done.
  std::optional<DoneWatcher> done;
  if (!context.config_from_script) done.emplace(context, host.end());
  asked->Wait();
  host.Linger();
  context.telemetry->ready = false;
  const absl::Status stopped = absl::CancelledError("by a signal");
  if (host.finished()) return absl::OkStatus();
  return done.has_value() ? done->Explain(stopped) : stopped;
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::ShardFlags flags;
  keelson::RoleProgram program;
  program.role = keelson::Role::kPs;
  program.takes_config_from_script = true;
  program.description =
      "Keelson's parameter server: holds one shard of the model, applies gradients to it and "
      "serves its values. Ends when the chief says that the job is over.";
  program.add_flags = [&](CLI::App* app) { keelson::AddShardFlags(app, &flags); };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunPsServer(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
