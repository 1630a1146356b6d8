#include "programs/shard_host.h"

#include <grpcpp/security/server_credentials.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "core/base/available_cores.h"
#include "core/base/available_memory.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/status_macros.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/config/shard_layout.h"
#include "core/rpc/health_service.h"
#include "core/startup/job_access.h"
#include "ps_server/service/departure.h"
#include "ps_server/service/parameter_grpc_service.h"
#include "ps_server/service/server_metrics.h"

namespace keelson {
namespace {

// Of calls to the host of a shard that this process has a replica of: a host that is frozen is
// replaced within as long.
constexpr ControlDeadlines kHostDeadlines = {absl::Milliseconds(1500), absl::Seconds(3)};

// The time to answer Finish before the connection is closed.
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(500);

// The default of the chief's --lease: without the job's token a caller may be any process.
constexpr absl::Duration kChiefSilence = absl::Seconds(10);

ParameterHandler::Options HandlerOptions(const RoleContext& context, const ShardFlags& flags) {
  ParameterHandler::Options options = {context.incarnation};
  if (!context.config_from_script) options.config_hash = context.config_hash;
  options.commit_threads = flags.io_threads;
  options.max_shard_bytes = flags.max_shard_bytes;
  options.credits.receive_budget_bytes = static_cast<int64_t>(ReceiveBudget());
  options.model_dir = context.config.checkpoint().model_dir();
  if (context.job_token.empty()) options.chief_exclusive = kChiefSilence;
  options.connect_host = [&context](const std::string& address) {
    return ConnectParameterControl("the shard's host", address,
                                   CredentialsOf(context, Role::kWorker), kHostDeadlines);
  };
  return options;
}

// The shards that the task may host: a parameter server its own one; a task that trains the one
// whose home it is, and those of the others, or their replicas, while they have to be elsewhere.
std::vector<size_t> ShardsOf(const RoleContext& context) {
  const ShardLayout layout(context.config, context.cluster);
  const std::optional<size_t> home = layout.HomeAt(context.self);
  if (!home.has_value()) return {static_cast<size_t>(context.self.index)};
  return layout.RingFrom(*home);
}

}  // namespace

// One thread receives, applies and answers at the speed of the socket; using more than half of the
// cores would take them from the kernel and the workers.
int ShardFlags::DefaultIoThreads() { return std::clamp(AvailableCores() / 2, 1, 4); }

// The rest is for what arrives, for the blocks of a snapshot that are being written, and for the
// program.
int64_t ShardFlags::DefaultShardBytes() { return AvailableMemory() / 4 * 3; }

void AddShardFlags(CLI::App* app, ShardFlags* flags) {
  app->add_option("--io_threads", flags->io_threads,
                  "Threads that receive, apply and answer pushes and pulls, and as many that "
                  "apply a synchronous step")
      ->capture_default_str()
      ->check(PositiveNumber());
  app->add_option("--max_shard_bytes", flags->max_shard_bytes,
                  "Bytes of values and optimizer state that the shard may have; a larger one is "
                  "refused (default: three quarters of the memory of the machine or container)")
      ->check(PositiveNumber());
}

ShardHost::ShardHost(const RoleContext& context, const ShardFlags& flags)
    : context_(context),
      flags_(flags),
      shards_(ShardsOf(context), HandlerOptions(context, flags), Clock::Real(), &end_),
      metrics_(AddServerMetrics(&context.telemetry->metrics, &shards_)) {}

ServiceShell ShardHost::MakeShell(const AccessGuard* guard) {
  HostedShards* const calls = shards_.calls();
  auto service = std::make_unique<ParameterGrpcService>(calls, calls, Clock::Real(), guard);
  RawServing serving;
  serving.methods = service->RawMethods();
  serving.through_memory = service->ByteMethods();
  serving.threads = flags_.io_threads;
  serving.guard = guard;
  return {std::move(service), std::move(serving)};
}

void ShardHost::Linger() {
  DepartureLimits limits;
  limits.longest = context_.leave_within;
  shards_.Linger(limits);
}

// In the order in which they are made.
class ShardServer::Parts {
 public:
  Parts(const RoleContext& context, ShardHost* host)
      : context_(context),
        guard_(SecretsOf(context)),
        shell_(host->MakeShell(&guard_)),
        health_(&context.telemetry->ready, {v1::ParameterService::service_full_name()}) {}

  absl::Status Serve() {
    ASSIGN_OR_RETURN(server_, RpcServer::Start(context_.cluster.ListenAddress(),
                                               grpc::InsecureServerCredentials(),
                                               {shell_.service.get(), &health_}, shell_.serving));
    LogInfo("listening on port ", server_->port(), ", waiting for the chief");
    return absl::OkStatus();
  }

  int port() const { return server_->port(); }

  void Stop() {
    health_.Stop();
    if (server_ != nullptr) server_->Shutdown(kShutdownGrace);
  }

 private:
  const RoleContext& context_;
  const AccessGuard guard_;
  const ServiceShell shell_;
  HealthService health_;
  std::unique_ptr<RpcServer> server_;
};

ShardServer::ShardServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ShardServer::~ShardServer() { parts_->Stop(); }

int ShardServer::port() const { return parts_->port(); }

absl::StatusOr<std::unique_ptr<ShardServer>> ShardServer::Start(const RoleContext& context,
                                                                ShardHost* host) {
  auto parts = std::make_unique<Parts>(context, host);
  RETURN_IF_ERROR(parts->Serve());
  return std::unique_ptr<ShardServer>(new ShardServer(std::move(parts)));
}

}  // namespace keelson
