#include "worker/worker_role.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/client/grpc_chief_service.h"
#include "core/client/grpc_parameter_client.h"
#include "core/client/grpc_parameter_service.h"
#include "core/data/open_datasets.h"
#include "core/device/device_factory.h"
#include "core/model/model_spec.h"

namespace keelson {
namespace {

RetryOptions RetryOptionsFrom(const WorkerFlags& flags) {
  RetryOptions retry;
  retry.give_up_after = absl::Seconds(flags.peer_timeout_seconds);
  return retry;
}

std::vector<std::string> Addresses(const TaskAddresses& tasks) {
  std::vector<std::string> addresses;
  for (const auto& [index, address] : tasks) addresses.push_back(address);
  return addresses;
}

absl::StatusOr<std::string> AskServersForChief(const RoleContext& context, const WorkerFlags& flags,
                                               const StopSignal* stop) {
  std::vector<std::unique_ptr<ParameterService>> servers;
  for (const auto& [index, address] : context.cluster.ps) {
    servers.push_back(ConnectParameterService(absl::StrCat("ps-", index), address,
                                              grpc::InsecureChannelCredentials()));
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

}  // namespace

void AddWorkerFlags(CLI::App* app, WorkerFlags* flags) {
  app->add_option("--device", flags->device, "cpu, cuda, or auto: CUDA where there is a usable GPU")
      ->capture_default_str();
  app->add_option("--compute_threads", flags->compute_threads,
                  "Threads of the CPU device (default: one per core)");
  app->add_option("--peer_timeout", flags->peer_timeout_seconds,
                  "Seconds to wait for a chief or server that does not answer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
}

ParameterClientFactory GrpcParameterClients(const RoleContext& context, const WorkerFlags& flags,
                                            const StopSignal* stop) {
  ShardedParameterClient::Options options;
  options.self = context.self;
  options.incarnation = context.incarnation;
  options.retry = RetryOptionsFrom(flags);
  return [=, own = Addresses(context.cluster.ps), model = context.config.model()](
             const Placement& placement, const std::vector<std::string>& told)
             -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
    ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(model));
    const bool knows_all = own.size() == static_cast<size_t>(placement.num_shards());
    return ConnectParameterClient(options, spec.variables, placement, knows_all ? own : told,
                                  grpc::InsecureChannelCredentials(), Clock::Real(), stop);
  };
}

absl::Status RunWorkerRole(const RoleContext& context, const WorkerFlags& flags,
                           ChiefService* chief, ParameterClientFactory make_client,
                           StopSignal* stop) {
  DeviceOptions device_options;
  device_options.threads = flags.compute_threads;
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   CreateDevice(flags.device, device_options));
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(context.config.model()));
  ASSIGN_OR_RETURN(const Datasets data,
                   OpenDatasets(context.config.data(), spec.input, spec.num_classes(),
                                context.config.train().seed()));
  WorkerOptions options = {context.self,   context.incarnation, context.peer,
                           context.config, context.config_hash, RetryOptionsFrom(flags)};
  Worker worker(std::move(options), chief, std::move(make_client), device.get(), data.train.get(),
                Clock::Real(), stop);
  return worker.Run();
}

absl::StatusOr<std::unique_ptr<ChiefService>> ConnectToChief(const RoleContext& context,
                                                             const WorkerFlags& flags,
                                                             const StopSignal* stop) {
  const std::optional<std::string> known = context.cluster.ChiefAddress();
  if (known.has_value()) {
    return ConnectChiefService(*known, grpc::InsecureChannelCredentials());
  }
  ASSIGN_OR_RETURN(const std::string found, AskServersForChief(context, flags, stop));
  return ConnectChiefService(found, grpc::InsecureChannelCredentials());
}

}  // namespace keelson
