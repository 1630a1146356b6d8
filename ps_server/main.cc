// ps_server: holds one shard of the model, applies gradients to it, serves its values.

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/server.h"
#include "core/startup/done_watcher.h"
#include "core/startup/role_program.h"
#include "ps_server/parameter_grpc_service.h"
#include "ps_server/parameter_handler.h"

namespace keelson {
namespace {

// Answers Finish before the connection goes.
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(500);

absl::Status RunPsServer(const RoleContext& context) {
  StopSignal end;
  SignalWatcher watcher(&end);
  ParameterHandler handler({context.incarnation, context.config_hash}, Clock::Real(), &end);
  ParameterGrpcService service(&handler);
  ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                   RpcServer::Start(context.cluster.ListenAddress(),
                                    grpc::InsecureServerCredentials(), {&service}));
  LogInfo("listening on port ", server->port(), ", waiting for the chief");
  const DoneWatcher done(context, &end);
  end.Wait();
  server->Shutdown(kShutdownGrace);
  return handler.finished() ? absl::OkStatus() : done.Explain(absl::CancelledError("by a signal"));
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::RoleProgram program;
  program.role = keelson::Role::kPs;
  program.description =
      "Keelson's parameter server: holds one shard of the model, applies gradients to it and "
      "serves its values. Ends when the chief says that the job is over.";
  program.run = keelson::RunPsServer;
  return keelson::RunRoleProgram(program, argc, argv);
}
