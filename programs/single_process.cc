#include "programs/single_process.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/lifecycle/chief_metrics.h"
#include "core/base/status_macros.h"
#include "core/client/sharded_parameter_client.h"
#include "core/model/spec/model_spec.h"
#include "dashboard/assets.h"
#include "evaluator/evaluator_role.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/service/server_metrics.h"

namespace keelson {
namespace {

ParameterClientFactory InProcessClients(const RoleContext& context, BulkHandler* server) {
  return [&context, server](
             ParameterClientRequest request) -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
    ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(context.config.model()));
    ShardedParameterClient::Options options =
        TransferOptions(context.config, spec.variables, request.placement);
    options.self = {Role::kWorker, 0};
    options.membership = request.membership;
    options.member_epoch = request.member_epoch;
    options.memory = std::move(request.memory);
    return ShardedParameterClient::Create(
        std::move(options), spec.variables, request.placement,
        std::make_unique<InlineBulkTransport>(std::vector<BulkHandler*>{server}), Clock::Real(),
        request.stop);
  };
}

// Several devices share the training; the evaluation uses the first one.
std::string FirstOf(const std::string& devices) { return devices.substr(0, devices.find(',')); }

absl::Status RefuseToken(const ChiefFlags& flags) {
  if (flags.auth_token_file.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--auth_token_file ", flags.auth_token_file,
      ": expected a cluster, found none: a job in one process takes no calls that need a token"));
}

}  // namespace

absl::Status RunSingleProcess(const RoleContext& context, const ChiefFlags& chief_flags,
                              const WorkerFlags& worker_flags, const DashboardFlags& dashboard,
                              StopSignal* stop) {
  RETURN_IF_ERROR(RefuseToken(chief_flags));
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceGroup> devices,
                   OpenWorkerDevices(worker_flags, context.cluster));
  StopSignal server_end(stop);
  ParameterHandler::Options server_options = {context.incarnation, context.config_hash};
  server_options.model_dir = context.config.checkpoint().model_dir();
  ParameterHandler server(server_options, Clock::Real(), &server_end);
  ASSIGN_OR_RETURN(const std::unique_ptr<Chief> chief,
                   MakeChief(context, chief_flags, {{"ps-0", "this process", &server}},
                             /*proposed=*/nullptr, stop));
  MetricRegistry* const metrics = &context.telemetry->metrics;
  const MetricRegistry::Registration server_metrics = AddServerMetrics(metrics, &server);
  const MetricRegistry::Registration chief_metrics =
      AddChiefMetrics(metrics, chief.get(), context.config.checkpoint());
  const Companion work = [&](ChiefService* service, StopSignal* companion_stop) {
    RoleContext worker = context;
    worker.self = {Role::kWorker, 0};
    return RunWorkerRole(worker, worker_flags, devices.get(), service,
                         InProcessClients(context, &server), companion_stop);
  };
  const Companion evaluate = [&](ChiefService* service, StopSignal* companion_stop) {
    RoleContext evaluator = context;
    evaluator.self = {Role::kEvaluator, 0};
    EvaluatorFlags flags;
    flags.device = FirstOf(worker_flags.device);
    flags.compute_threads = 1;
    flags.dashboard = dashboard;
    return RunEvaluatorRole(evaluator, flags, service, companion_stop,
                            {EmbeddedDashboardAssets(), /*token=*/""});
  };
  return RunChief(context, chief.get(), {work, evaluate}, stop);
}

}  // namespace keelson
