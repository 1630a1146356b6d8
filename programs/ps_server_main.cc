// ps_server: holds one shard of the model, applies gradients to it, serves its values.

#include <algorithm>
#include <cstdint>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "core/base/available_cores.h"
#include "core/base/available_memory.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/rpc/access.h"
#include "core/rpc/health_service.h"
#include "core/rpc/server.h"
#include "core/startup/done_watcher.h"
#include "core/startup/job_access.h"
#include "core/startup/role_program.h"
#include "ps_server/service/departure.h"
#include "ps_server/service/parameter_grpc_service.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/service/server_metrics.h"

namespace keelson {
namespace {

// The time to answer Finish before the connection is closed.
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(500);

// The default of the chief's --lease: without the job's token a caller may be any process.
constexpr absl::Duration kChiefSilence = absl::Seconds(10);

struct Flags {
  int io_threads = 1;
  int64_t max_shard_bytes = 0;
};

// The rest is for what arrives, for the blocks of a snapshot that are being written, and for the
// program.
int64_t DefaultShardBytes() { return AvailableMemory() / 4 * 3; }

// One thread receives, applies and answers at the speed of the socket; using more than half of the
// cores would take them from the kernel and the workers.
int DefaultIoThreads() { return std::clamp(AvailableCores() / 2, 1, 4); }

absl::Status RunPsServer(const RoleContext& context, const Flags& flags, StopSignal* asked) {
  StopSignal end;
  const StopCallback ends(&end, [asked] { asked->Raise(); });
  ParameterHandler::Options options = {context.incarnation, context.config_hash};
  options.commit_threads = flags.io_threads;
  options.max_shard_bytes = flags.max_shard_bytes;
  options.credits.receive_budget_bytes = static_cast<int64_t>(ReceiveBudget());
  options.model_dir = context.config.checkpoint().model_dir();
  if (context.job_token.empty()) options.chief_exclusive = kChiefSilence;
  ParameterHandler handler(options, Clock::Real(), &end);
  const MetricRegistry::Registration metrics =
      AddServerMetrics(&context.telemetry->metrics, &handler);
  const AccessGuard guard(SecretsOf(context));
  ParameterGrpcService service(&handler, &handler, Clock::Real(), &guard);
  HealthService health(&context.telemetry->ready, {v1::ParameterService::service_full_name()});
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RpcServer> server,
      RpcServer::Start(context.cluster.ListenAddress(), grpc::InsecureServerCredentials(),
                       {&service, &health},
                       {service.RawMethods(), flags.io_threads, absl::ZeroDuration(), &guard}));
  LogInfo("listening on port ", server->port(), ", waiting for the chief");
  context.telemetry->ready = true;
  const DoneWatcher done(context, &end);
  asked->Wait();
  handler.Leave();
  DepartureLimits limits;
  limits.longest = context.leave_within;
  LingerForChief([&] { return handler.chief_sign(); }, [&] { return handler.CloseIfSaved(); },
                 limits, Clock::Real(), end);
  context.telemetry->ready = false;
  health.Stop();
  server->Shutdown(kShutdownGrace);
  return handler.finished() ? absl::OkStatus() : done.Explain(absl::CancelledError("by a signal"));
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::Flags flags;
  flags.io_threads = keelson::DefaultIoThreads();
  flags.max_shard_bytes = keelson::DefaultShardBytes();
  keelson::RoleProgram program;
  program.role = keelson::Role::kPs;
  program.description =
      "Keelson's parameter server: holds one shard of the model, applies gradients to it and "
      "serves its values. Ends when the chief says that the job is over.";
  program.add_flags = [&](CLI::App* app) {
    app->add_option("--io_threads", flags.io_threads,
                    "Threads that receive, apply and answer pushes and pulls, and as many that "
                    "apply a synchronous step")
        ->capture_default_str()
        ->check(keelson::PositiveNumber());
    app->add_option("--max_shard_bytes", flags.max_shard_bytes,
                    "Bytes of values and optimizer state that the shard may have; a larger one is "
                    "refused (default: three quarters of the memory of the machine or container)")
        ->check(keelson::PositiveNumber());
  };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunPsServer(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
