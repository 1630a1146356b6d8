#include "worker/worker_role.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "core/base/available_cores.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/status_macros.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/config/shard_layout.h"
#include "core/data/open_datasets.h"
#include "core/device/factory/device_factory.h"
#include "core/device/precision.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/model_variables.h"
#include "core/startup/job_access.h"
#include "core/wire/bulk_messages.h"

namespace keelson {
namespace {

// The shard that this task hosts, which `handler` serves.
std::optional<OwnShards> OwnShardsOf(const ShardLayout& layout, const ClusterSpec& cluster,
                                     BulkHandler* handler) {
  const std::optional<size_t> home = layout.HomeAt(cluster.self);
  if (handler == nullptr || !home.has_value()) return std::nullopt;
  OwnShards own = {cluster.SelfAddress().value_or(""), {}};
  for (const size_t shard : layout.RingFrom(*home)) own.handlers[shard] = handler;
  return own;
}

absl::StatusOr<std::string> AskServersForChief(const RoleContext& context, const WorkerFlags& flags,
                                               const StopSignal* stop) {
  std::vector<std::unique_ptr<ParameterControl>> servers;
  for (const auto& [index, address] : context.cluster.ps) {
    servers.push_back(ConnectParameterControl(absl::StrCat("ps-", index), address,
                                              CredentialsOf(context, Role::kWorker)));
  }
  v1::FindChiefResponse found;
  RETURN_IF_ERROR(CallWithRetries(
      RetryOptionsFrom(flags), "waiting for a server that knows the chief", Clock::Real(), stop,
      [&]() -> absl::Status {
        absl::Status status = absl::UnavailableError("no chief has announced itself");
        for (const auto& server : servers) {
          status = server->FindChief(v1::FindChiefRequest(), &found);
          if (status.ok() && !found.address().empty()) return status;
        }
        return status.ok() ? absl::UnavailableError("no chief has announced itself") : status;
      }));
  LogInfo("the chief is at ", found.address());
  return found.address();
}

absl::string_view HostOf(absl::string_view address) {
  return address.substr(0, address.rfind(':'));
}

}  // namespace

std::vector<BulkServer> NameServers(const ShardLayout& layout, const ClusterSpec& cluster,
                                    const std::vector<std::string>& addresses) {
  std::vector<BulkServer> servers = ServersAt(addresses);
  if (cluster.collective()) {
    for (size_t s = 0; s < servers.size(); ++s) servers[s].name = absl::StrCat("shard-", s);
  }
  if (addresses.size() == layout.num_shards()) {
    size_t s = 0;
    for (const auto& [index, address] : cluster.ps) {
      servers[s++] = {absl::StrCat("ps-", index), address};
    }
  }
  for (const Task& host : layout.hosts()) {
    const auto listed = cluster.addresses(host.role).find(host.index);
    if (listed == cluster.addresses(host.role).end()) continue;
    for (BulkServer& server : servers) {
      if (server.address == listed->second) server.name = host.ToString();
    }
  }
  return servers;
}

ServerNaming NamingOf(const RoleContext& context) {
  return [&context](const std::vector<std::string>& addresses) {
    return NameServers(ShardLayout(context.config, context.cluster), context.cluster, addresses);
  };
}

RetryOptions RetryOptionsFrom(const WorkerFlags& flags) {
  RetryOptions retry;
  retry.give_up_after = absl::Seconds(flags.peer_timeout_seconds);
  return retry;
}

void AddWorkerFlags(CLI::App* app, WorkerFlags* flags) {
  app->add_option("--device", flags->device,
                  "cpu; cuda, the first GPU; cuda:N; cuda:N,N,...: several GPUs that share each "
                  "batch; or auto: cuda where there is a usable GPU")
      ->capture_default_str();
  app->add_option("--precision", flags->precision,
                  "How GPUs multiply matrices: float32, tf32, or bfloat16 with sums in float32")
      ->capture_default_str();
  app->add_option("--compute_threads", flags->compute_threads,
                  "Threads of the CPU device (default: one per core, shared with the other workers "
                  "of this host)");
  AddExchangeFlags(app, flags);
}

void AddExchangeFlags(CLI::App* app, WorkerFlags* flags) {
  app->add_option("--bulk_connections", flags->bulk.connections,
                  "Connections to each parameter server for gradients and values")
      ->capture_default_str()
      ->check(PositiveNumber());
  app->add_option_function<std::string>(
         "--bulk_socket",
         [flags](const std::string& name) {
           flags->bulk.local_route = name == "tcp"    ? LocalRoute::kTcp
                                     : name == "unix" ? LocalRoute::kUnix
                                                      : LocalRoute::kMemory;
         },
         "How gradients and values travel to parameter servers on this host: memory, which worker "
         "and server share; unix, a unix socket; or tcp. Each where the one before does not lead "
         "to all servers")
      ->check(CLI::IsMember({"memory", "unix", "tcp"}))
      ->default_str("memory");
  app->add_option("--step_bound", flags->step_bound_seconds,
                  "Seconds for which a step may last, up to a week, before the chief takes this "
                  "worker for lost. It counts if it is more than 20 times the median of the steps, "
                  "30 seconds, and 10 minutes for the first step")
      ->capture_default_str()
      ->check(CLI::Range(0, 7 * 24 * 3600));
  app->add_option("--peer_timeout", flags->peer_timeout_seconds,
                  "Seconds to wait for a chief or server that does not answer")
      ->capture_default_str()
      ->check(PositiveNumber());
}

int ComputeThreads(const ClusterSpec& cluster, int available_cores) {
  const std::string self = cluster.SelfAddress().value_or("");
  const auto sharing =
      std::count_if(cluster.workers.begin(), cluster.workers.end(),
                    [&](const auto& w) { return HostOf(w.second) == HostOf(self); });
  return std::max(1, available_cores / std::max(1, static_cast<int>(sharing)));
}

ShardedParameterClient::Options TransferOptions(const v1::TrainConfig& train_config,
                                                absl::Span<const VariableSpec> variables,
                                                const Placement& placement) {
  const v1::TransferConfig& config = train_config.transfer();
  ShardedParameterClient::Options options;
  options.seed = train_config.train().seed();
  options.formats = ResolveTransferFormats(config, variables);
  options.table_formats = ResolveTableFormats(config, placement.tables());
  options.depth = config.depth();
  int64_t largest_shard = 0;
  for (size_t s = 0; s < placement.num_shards(); ++s) {
    largest_shard = std::max(largest_shard, placement.ShardBytes(s));
  }
  options.background = options.depth > 1 || largest_shard > static_cast<int64_t>(kBulkPayloadBytes);
  return options;
}

ParameterClientFactory GrpcParameterClients(const RoleContext& context, const WorkerFlags& flags,
                                            BulkHandler* own_shard) {
  return [&context, flags, own_shard](
             ParameterClientRequest request) -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
    ASSIGN_OR_RETURN(const ModelVariables model, InferVariables(context.config.model()));
    ShardedParameterClient::Options options =
        TransferOptions(context.config, model.variables, request.placement);
    options.self = context.self;
    options.membership = request.membership;
    options.member_epoch = request.member_epoch;
    options.retry = RetryOptionsFrom(flags);
    options.memory = std::move(request.memory);
    const ShardLayout layout(context.config, context.cluster);
    options.names_shards = !layout.hosts().empty();
    return ConnectParameterClient(std::move(options), model.variables, request.placement,
                                  NameServers(layout, context.cluster, request.ps_addresses),
                                  CredentialsOf(context, Role::kWorker), Clock::Real(),
                                  request.stop, flags.bulk,
                                  OwnShardsOf(layout, context.cluster, own_shard));
  };
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> OpenWorkerDevices(const WorkerFlags& flags,
                                                               const ClusterSpec& cluster) {
  DeviceOptions options;
  ASSIGN_OR_RETURN(options.precision, ParsePrecision(flags.precision));
  options.threads = flags.compute_threads;
  if (flags.compute_threads == 0) options.threads = ComputeThreads(cluster, AvailableCores());
  return CreateDevices(flags.device, options);
}

absl::Status RunWorkerRole(const RoleContext& context, const WorkerFlags& flags,
                           DeviceGroup* devices, ChiefService* chief,
                           ParameterClientFactory make_client, StopSignal* stop) {
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(context.config.model()));
  ASSIGN_OR_RETURN(const Datasets data, OpenDatasets(context.config.data(), spec.records,
                                                     context.config.train().seed()));
  WorkerOptions options = {context.self,
                           context.peer,
                           context.config,
                           context.config_hash,
                           RetryOptionsFrom(flags),
                           absl::Seconds(flags.step_bound_seconds),
                           data.stream,
                           NamingOf(context)};
  Worker worker(std::move(options), chief, std::move(make_client), devices, data.train.get(),
                Clock::Real(), stop);
  const MetricRegistry::Registration metrics =
      context.telemetry->metrics.Add([&worker, device = devices->name()](MetricPage* page) {
        CollectWorkerDevice(device, page);
        CollectWorkerMetrics(worker.progress().totals(), page);
      });
  context.telemetry->ready = true;
  return worker.Run();
}

absl::StatusOr<std::unique_ptr<ChiefService>> ConnectToChief(const RoleContext& context,
                                                             const WorkerFlags& flags,
                                                             const StopSignal* stop) {
  const std::optional<std::string> known = context.cluster.ChiefAddress();
  const Credentials credentials = CredentialsOf(context, Role::kWorker);
  if (known.has_value()) return ConnectChiefService(*known, credentials);
  ASSIGN_OR_RETURN(const std::string found, AskServersForChief(context, flags, stop));
  return ConnectChiefService(found, credentials);
}

}  // namespace keelson
