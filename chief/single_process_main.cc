#include "chief/single_process_main.h"

#include "core/base/status_macros.h"
#include "core/client/sharded_parameter_client.h"
#include "core/model/model_spec.h"
#include "evaluator/evaluator_role.h"
#include "ps_server/parameter_handler.h"

namespace keelson {
namespace {

ParameterClientFactory InProcessClients(const RoleContext& context, ParameterService* server,
                                        const StopSignal* stop) {
  return [&context, server, stop](const Placement& placement, const std::vector<std::string>&,
                                  std::optional<ParameterMemory> memory)
             -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
    ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(context.config.model()));
    ShardedParameterClient::Options options =
        TransferOptions(context.config.transfer(), spec.variables, placement);
    options.self = {Role::kWorker, 0};
    options.incarnation = context.incarnation;
    options.memory = std::move(memory);
    return ShardedParameterClient::Create(
        std::move(options), spec.variables, placement,
        std::make_unique<InlineBulkTransport>(std::vector<ParameterService*>{server}),
        Clock::Real(), stop);
  };
}

}  // namespace

absl::Status RunSingleProcess(const RoleContext& context, const ChiefFlags& chief_flags,
                              const WorkerFlags& worker_flags, StopSignal* stop) {
  StopSignal server_end(stop);
  ParameterHandler server({context.incarnation, context.config_hash}, Clock::Real(), &server_end);
  ASSIGN_OR_RETURN(const std::unique_ptr<Chief> chief,
                   MakeChief(context, chief_flags, {{"ps-0", "this process", &server}}, stop));
  const Companion work = [&](ChiefService* service, StopSignal* companion_stop) {
    RoleContext worker = context;
    worker.self = {Role::kWorker, 0};
    return RunWorkerRole(worker, worker_flags, service,
                         InProcessClients(context, &server, companion_stop), companion_stop);
  };
  const Companion evaluate = [&](ChiefService* service, StopSignal* companion_stop) {
    RoleContext evaluator = context;
    evaluator.self = {Role::kEvaluator, 0};
    EvaluatorFlags flags;
    flags.device = worker_flags.device;
    flags.compute_threads = 1;
    return RunEvaluatorRole(evaluator, flags, service, companion_stop);
  };
  return RunChief(chief.get(), {work, evaluate}, stop);
}

}  // namespace keelson
